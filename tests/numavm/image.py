#!/usr/bin/python3
"""image.py BUILD OUT [CASE ...]: the initramfs of the NUMA machine: our programs (stripped), the
libraries they load, python with the modules that the cases import, busybox, the configuration.
Everything lies below /work as in the checkout, so that the cases use the helpers of the other
end-to-end tests."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FAKES = "touch noaffinity".split()
PYTHON = "/usr/bin/python3"
FILES = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "/etc/group": "root:x:0:\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
}


def output(*argv):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout


def programs(build):
    """All of ours; moe-hold is static and loads nothing."""
    return sorted(n for n in os.listdir(build) if re.fullmatch(r"moed|moectl|moe-\w+", n))


def libraries(path):
    """What ldd finds, the loader too."""
    return set(re.findall(r"(/\S+) \(0x", output("ldd", path)))


def modules():
    """Files that python opens to import what the cases import, and what it loads lazily there."""
    code = (
        "import sys; sys.argv = ['cases.py']; sys.path[:0] = ['tests/numavm', 'tests/e2e']; "
        "import cases, linecache, tokenize, encodings.ascii, encodings.idna; "
        "print(*(m.__file__ for m in list(sys.modules.values()) if getattr(m, '__file__', None)), "
        "sep=chr(10))"
    )
    r = subprocess.run(
        [PYTHON, "-S", "-B", "-c", code], check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    return [f for f in r.stdout.split() if f.startswith("/usr/")]


def loaded(name):
    """Path of a library that programs load when they need it (lib/loop/curl.h), which ldd does not
    see."""
    return re.search(
        r"^\s*%s .* => (/\S+)$" % re.escape(name), output("/sbin/ldconfig", "-p"), re.M
    ).group(1)


class Tree:
    def __init__(self, top):
        self.top, self.have = top, set()

    def put(self, path, source=None, strip=False):
        to = self.top + path
        if path in self.have:
            return
        self.have.add(path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if strip:
            subprocess.run(["strip", "-o", to, source or path], check=True)
        else:
            shutil.copy(source or path, to)

    def program(self, path, source=None, strip=True):
        self.put(path, source, strip)
        for lib in libraries(source or path):
            self.put(lib)


def main():
    build, out = os.path.join(ROOT, sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as top:
        t = Tree(top)
        t.put("/bin/busybox")
        t.put("/init", os.path.join(ROOT, "tests/numavm/init"))
        for path in ("", "/init"):
            os.chmod(top + path, 0o755)
        for name in programs(build):
            t.program("/work/build/" + name, os.path.join(build, name))
        t.program(loaded("libcurl.so.4"), strip=False)
        for name in FAKES:
            t.program("/work/build/tests/fake/" + name, os.path.join(build, "tests/fake", name))
        t.program(PYTHON, os.path.realpath(PYTHON), strip=False)
        for f in modules():
            t.program(f, strip=False) if f.endswith(".so") else t.put(f)
        subprocess.run(
            [
                PYTHON,
                "-m",
                "compileall",
                "-q",
                "--invalidation-mode",
                "unchecked-hash",
                top + "/usr",
            ],
            check=True,
        )
        for name in ("e2e/lib.py", "e2e/rig.py", "e2e/schemas.py", "numavm/cases.py"):
            t.put("/work/tests/" + name, os.path.join(ROOT, "tests", name))
        shutil.copytree(os.path.join(ROOT, "config"), top + "/work/config")
        for path, text in dict(FILES, **{"/work/arguments": " ".join(sys.argv[3:])}).items():
            os.makedirs(os.path.dirname(top + path), exist_ok=True)
            with open(top + path, "w") as f:
                f.write(text)
        names = subprocess.run(["find", "."], check=True, stdout=subprocess.PIPE, cwd=top).stdout
        with open(out + ".new", "wb") as f:
            subprocess.run(
                ["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"],
                input=names,
                stdout=f,
                check=True,
                cwd=top,
            )
        os.rename(out + ".new", out)


if __name__ == "__main__":
    main()
