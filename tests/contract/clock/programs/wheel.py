"""A wheel with one module, written to the folder that is named."""

import sys
import zipfile

TAGS = "Wheel-Version: 1.0\nGenerator: zoo\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
with zipfile.ZipFile(f"{sys.argv[1]}/one-1-py3-none-any.whl", "w") as archive:
    archive.writestr("one.py", "")
    archive.writestr("one-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: one\nVersion: 1\n")
    archive.writestr("one-1.dist-info/WHEEL", TAGS)
    archive.writestr("one-1.dist-info/RECORD", "")
