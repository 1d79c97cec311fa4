"""Images without root, and without a registry if need be: pinned .debs and wheels, to layers, to an image.

debfile, debs, wheels, pyc   what a layer holds, as entries
layer, unpack, stored        entries → tar → folder, and both in the store
apt, pypi, resolve           recipe → lock: the only part that asks archives what is newest
skopeo, registry             what a registry has of a lock
manifest, ocilayout, blobs   what others say their image is, read with suspicion
foreign, foreignlayer        images that others made: registry or layout → layers → folders
build, ensure                lock → image, or a refusal
"""
