"""Images made of tarfile and json: layers, OCI layouts, what `docker save` writes."""
import ctypes
import gzip
import hashlib
import io
import json
import os
import platform
import tarfile

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
OCI = "application/vnd.oci.image."


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def entry(name, data=b"", kind=tarfile.REGTYPE, link="", mode=0o644, mtime=1000000000):
    """(TarInfo, bytes) of one entry."""
    t = tarfile.TarInfo(name)
    t.type, t.linkname, t.mode, t.mtime = kind, link, mode, mtime
    data = data.encode() if isinstance(data, str) else data
    t.size = len(data)
    return t, data


def directory(name, mode=0o755):
    return entry(name, kind=tarfile.DIRTYPE, mode=mode)


def symlink(name, to):
    return entry(name, kind=tarfile.SYMTYPE, link=to, mode=0o777)


def hardlink(name, to):
    return entry(name, kind=tarfile.LNKTYPE, link=to)


def layer(*entries):
    """The bytes of a tar archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for info, data in entries:
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zstd(data):
    lib = ctypes.CDLL("libzstd.so.1")
    lib.ZSTD_compressBound.restype = lib.ZSTD_compress.restype = ctypes.c_size_t
    room = lib.ZSTD_compressBound(ctypes.c_size_t(len(data)))
    out = ctypes.create_string_buffer(room)
    n = lib.ZSTD_compress(out, ctypes.c_size_t(room), data, ctypes.c_size_t(len(data)), 3)
    return out.raw[:n]


PACK = {"": lambda d: d, "+gzip": lambda d: gzip.compress(d, mtime=0), "+zstd": zstd}


class Layout:
    """An OCI image layout in a directory."""

    def __init__(self, path):
        self.path = path
        self.index = []
        os.makedirs(path + "/blobs/sha256")
        with open(path + "/oci-layout", "w") as f:
            f.write('{"imageLayoutVersion": "1.0.0"}')
        self.write_index()

    def write_index(self):
        with open(self.path + "/index.json", "w") as f:
            json.dump({"schemaVersion": 2, "manifests": self.index}, f)

    def blob(self, data, kind):
        """Its descriptor."""
        if not isinstance(data, bytes):
            data = json.dumps(data).encode()
        d = {"mediaType": OCI + kind, "digest": sha256(data), "size": len(data)}
        with open(self.file(d), "wb") as f:
            f.write(data)
        return d

    def file(self, descriptor):
        return self.path + "/blobs/sha256/" + descriptor["digest"].split(":")[1]

    def manifest(self, layers, pack="+gzip", architecture=ARCHITECTURE, config=None, os="linux"):
        """Descriptor of the manifest of an image with these layers (bytes of archives)."""
        document = {
            "architecture": architecture,
            "os": os,
            "config": config or {},
            "rootfs": {"type": "layers", "diff_ids": [sha256(d) for d in layers]},
        }
        return self.blob(
            {
                "schemaVersion": 2,
                "config": self.blob(document, "config.v1+json"),
                "layers": [self.blob(PACK[pack](d), "layer.v1.tar" + pack) for d in layers],
            },
            "manifest.v1+json",
        )

    def add(self, descriptor, tag=None, architecture=None):
        d = dict(descriptor)
        if tag:
            d["annotations"] = {"org.opencontainers.image.ref.name": tag}
        if architecture:
            d["platform"] = {"architecture": architecture, "os": "linux"}
        self.index.append(d)
        self.write_index()
        return d["digest"]

    def read(self, descriptor):
        with open(self.file(descriptor)) as f:
            return json.load(f)


def save(path, layers, architecture=ARCHITECTURE, copies=1, lie=False, pack=None, instead=None):
    """What `docker save` writes; its id. pack: as Docker 25 and later do. instead: layers that are
    there in place of those that the image has."""
    config = json.dumps(
        {
            "architecture": architecture,
            "os": "linux",
            "config": {"Env": ["A=1"], "WorkingDir": "/w"},
            "rootfs": {"type": "layers", "diff_ids": [sha256(d) for d in layers]},
        }
    ).encode()
    name = sha256(config).split(":")[1] + ".json"
    layers = instead or layers
    names = ["%d/layer.tar" % i for i in range(len(layers))]
    if pack:
        layers = [PACK[pack](d) for d in layers]
        names = ["blobs/sha256/" + sha256(d).split(":")[1] for d in layers]
        name = "blobs/sha256/" + sha256(config).split(":")[1]
    manifest = [{"Config": name, "RepoTags": ["x:1"], "Layers": names}] * copies
    if lie:
        layers = [d + bytes(512) for d in layers]
    with open(path, "wb") as f:
        f.write(
            layer(
                *[
                    # the same once more is a link
                    symlink(n, "../" + names[layers.index(d)])
                    if layers.index(d) < i and not pack
                    else entry(n, d)
                    for i, (n, d) in enumerate(zip(names, layers))
                ],
                entry(name, config),
                entry("manifest.json", json.dumps(manifest)),
            )
        )
    return "id:" + sha256(config)
