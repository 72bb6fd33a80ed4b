#!/usr/bin/env python3
"""Draw `docs/images/ls-and-show.svg`: the real output of `steno ls` and `steno show` over the sample sessions.

Usage: scripts/picture.py [STENO], where STENO is the program to run, `target/debug/steno` by default.
With `--check`, nothing is written, and the exit code is 1 if the picture is not up to date.
"""

import fcntl
import html
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/images/ls-and-show.svg"
# What is typed, and how many lines of its output are drawn.
COMMANDS = [("ls --demo --utc", 99), ("show 7c9e --demo", 37)]
COLUMNS = 112
COLUMN_PX, LINE_PX, MARGIN_PX = 7.85, 18, 16
# Colours of the terminal in light and in dark; SGR codes are the names of the classes.
LIGHT = {"bg": "#fbfbfa", "fg": "#1f2328", "c2": "#6a737d", "c32": "#1a7f37", "c34": "#0550ae", "c36": "#0a7d8c", "c31": "#b3261e"}
DARK = {"bg": "#161b22", "fg": "#e6edf3", "c2": "#8b949e", "c32": "#56d364", "c34": "#79c0ff", "c36": "#56d4dd", "c31": "#ff7b72"}


def outputs(steno):
    """Run the commands in a new home and return the lines of a terminal."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": os.environ["PATH"], "STENO_PAGER": "cat", "TZ": "UTC"}

        def run(arguments):
            """Run a command in a terminal of this width and return what it prints."""
            ours, its = pty.openpty()
            fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
            child = subprocess.Popen([steno, *arguments.split()], env=environment, stdin=its, stdout=its, stderr=subprocess.DEVNULL)
            os.close(its)
            printed = b""
            try:
                while part := os.read(ours, 65536):
                    printed += part
            except OSError:
                pass  # The end, as Linux reports it.
            os.close(ours)
            if child.wait() != 0:
                sys.exit(f"steno {arguments} failed")
            return printed.decode()

        subprocess.run([steno, "up", "--demo", "--once"], env=environment, capture_output=True, check=True)
        lines = []
        for arguments, count in COMMANDS:
            if lines:
                lines.append([])
            lines.append([({"2"}, "$ "), ({"1"}, f"steno {arguments}")])
            printed = [row for line in run(f"{arguments} --color always").splitlines() for row in wrap(spans(line))]
            lines += printed[:count]
            if len(printed) > count:
                lines.append([({"2"}, "…")])
        return lines


def spans(line):
    """Split a line with SGR escapes into pairs of the codes in force and a text."""
    codes, found = set(), []
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b["):
            code = part[2:-1]
            codes = set() if code in ("", "0") else codes | set(code.split(";"))
        elif part:
            found.append((codes, part))
    return found


def wrap(line):
    """Break a line where a terminal of this width does."""
    rows, column = [[]], 0
    for codes, text in line:
        while text:
            if column == COLUMNS:
                rows.append([])
                column = 0
            piece = text[: COLUMNS - column]
            rows[-1].append((codes, piece))
            column += len(piece)
            text = text[len(piece) :]
    return rows


def draw(lines):
    """Return the picture of a terminal with these lines."""
    width = round(COLUMNS * COLUMN_PX + 2 * MARGIN_PX)
    height = len(lines) * LINE_PX + 2 * MARGIN_PX
    rules = lambda colours: "".join(f".{name}{{fill:{value}}}" for name, value in colours.items())
    style = f"text{{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:13px}}{rules(LIGHT)}.c1{{font-weight:700}}.c3{{font-style:italic}}"
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">']
    out.append("<title>Output of steno ls and steno show on the sample sessions</title>")
    out.append(f"<style>{style}@media (prefers-color-scheme:dark){{{rules(DARK)}}}</style>")
    out.append(f'<rect class="bg" width="{width}" height="{height}" rx="8"/>')
    for number, line in enumerate(lines):
        y, column = MARGIN_PX + number * LINE_PX + 13, 0
        texts = []
        for codes, text in line:
            if text.strip():
                names = " ".join(["fg", *(f"c{code}" for code in sorted(codes, key=int))])
                x = MARGIN_PX + column * COLUMN_PX
                length = len(text) * COLUMN_PX
                texts.append(f'<tspan class="{names}" x="{x:.1f}" textLength="{length:.1f}">{html.escape(text, quote=False)}</tspan>')
            column += len(text)
        if texts:
            out.append(f'<text y="{y}" xml:space="preserve">{"".join(texts)}</text>')
    return "\n".join([*out, "</svg>", ""])


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    steno = pathlib.Path(arguments[0] if arguments else ROOT / "target/debug/steno").resolve()
    picture = draw(outputs(steno))
    if "--check" in sys.argv:
        sys.exit(0 if PICTURE.exists() and PICTURE.read_text() == picture else f"{PICTURE.relative_to(ROOT)} is not up to date")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture)


if __name__ == "__main__":
    main()
