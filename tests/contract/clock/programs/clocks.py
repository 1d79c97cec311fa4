"""Every way in which Python gives the time, as text too."""

import calendar
import datetime as dt
import email.utils
import logging
import os
import tempfile
import time
import uuid

from tell import file, now, waits

now(time.time())
now(time.time_ns() / 1e9)
now(time.clock_gettime(time.CLOCK_REALTIME))
now(dt.datetime.now(dt.UTC).timestamp())
now(dt.datetime.now().timestamp())  # noqa: DTZ005 - programs do
print("now", calendar.timegm(time.gmtime()))
print("now", int(time.mktime(time.localtime())))
print("now", int(email.utils.parsedate_to_datetime(email.utils.formatdate()).timestamp()))
now(logging.makeLogRecord({}).created)
now((uuid.uuid1().time - 0x01B21DD213814000) / 1e7)
with tempfile.NamedTemporaryFile() as made:
    file(made.name)
    os.utime(made.name)
    file(made.name)
with waits():
    time.sleep(0.2)
