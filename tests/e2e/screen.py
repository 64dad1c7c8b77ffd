"""A program on a terminal of so many columns and lines, and what stands on its screen. The terminal
knows the codes that moectl may use; any other is an error, as is a line that wraps in a view."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from lib import MOECTL, PATIENCE, Failed

CODE = re.compile(r"\033\[(\??)([0-9;]*)([A-Za-z])")


class Screen:
    def __init__(self, width, height):
        self.other = False  # the alternate screen
        self.cursor = True  # it is seen
        self.frames = 0  # the cursor went home
        self.colours = set()
        self.rest = ""
        self.resize(width, height)

    def resize(self, width, height):
        self.width, self.height = width, height
        self.row = self.column = 0
        self.lines = [[" "] * width for _ in range(height)]

    def feed(self, text):
        text, self.rest = self.rest + text, ""
        at = 0
        while at < len(text):
            if text[at] != "\033":
                self.letter(text[at])
                at += 1
                continue
            code = CODE.match(text, at)
            if not code:
                if len(text) - at > 20:
                    raise Failed("no code that is known: %r" % text[at : at + 20])
                self.rest = text[at:]  # it goes on in the next piece
                return
            self.code(*code.groups())
            at = code.end()

    def letter(self, c):
        if c == "\r":
            self.column = 0
        elif c == "\n":
            if self.row == self.height - 1:
                self.lines = self.lines[1:] + [[" "] * self.width]
            else:
                self.row += 1
        else:
            if not 32 <= ord(c) < 127:
                raise Failed("%r on the screen" % c)
            if self.column >= self.width and self.other:
                raise Failed("line %d wraps: %s" % (self.row, "".join(self.lines[self.row])))
            if self.column >= self.width:
                self.letter("\r")
                self.letter("\n")
            self.lines[self.row][self.column] = c
            self.column += 1

    def code(self, private, numbers, letter):
        if private:
            if numbers not in ("25", "1049"):
                raise Failed("mode ?%s" % numbers)
            if numbers == "1049":
                self.other = letter == "h"
            else:
                self.cursor = letter == "h"
        elif letter == "H" and not numbers:
            self.row = self.column = 0
            self.frames += 1
        elif letter in "KJ" and not numbers:
            if self.column >= self.width:
                raise Failed("the last letter of line %d would be lost" % self.row)
            self.lines[self.row][self.column :] = " " * (self.width - self.column)
            for row in range(self.row + 1, self.height if letter == "J" else 0):
                self.lines[row] = [" "] * self.width
        elif letter == "m":
            self.colours.add(numbers)
        else:
            raise Failed("code %s%s" % (numbers, letter))

    def text(self):
        return "\n".join("".join(x).rstrip() for x in self.lines).rstrip("\n")


class Terminal:
    """moectl on it: `with Terminal(["top"], env, 80, 24) as t`."""

    def __init__(self, words, env, width=80, height=24):
        self.screen = Screen(width, height)
        self.master, slave = pty.openpty()
        self.size(width, height)
        self.before = termios.tcgetattr(self.master)
        self.process = subprocess.Popen(
            [MOECTL, *words],
            env=dict({"TERM": "xterm"}, **env),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.slave = slave

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def size(self, width, height):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def resize(self, width, height):
        self.read(0.3)
        self.screen.resize(width, height)
        self.size(width, height)

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self, seconds):
        """Takes what comes within that time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.master], [], [], left)[0]:
                self.screen.feed(os.read(self.master, 65536).decode())

    def wait(self, condition, what, deadline=10):
        """Until condition(text of the screen)."""
        end = time.monotonic() + deadline * PATIENCE
        while not condition(self.screen.text()):
            if time.monotonic() > end:
                raise Failed("%s: not within %d s:\n%s" % (what, deadline, self.screen.text()))
            self.read(0.05)
        return self.screen.text()

    def see(self, words, deadline=10):
        return self.wait(lambda text: words in text, "`%s` on the screen" % words, deadline)

    def ends(self):
        """Its exit status."""
        end = time.monotonic() + 10 * PATIENCE
        while self.process.poll() is None:
            if time.monotonic() > end:
                raise Failed("it does not end:\n%s" % self.screen.text())
            self.read(0.05)
        self.read(0.1)
        return self.process.returncode

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
