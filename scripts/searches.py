#!/usr/bin/env python3
"""Compares `steno search` with a plain scan of every transcript, which follows docs/search.md and nothing else.

    scripts/searches.py STENO [--queries N] [--seed N] DIR…

Each DIR is imported into a store of its own, together with a session of unusual texts that is written here. Then queries
are made from the texts: words, parts of identifiers, phrases, prefixes, paths, regular expressions, exact texts, CJK
characters, limited to kinds and tools. Every text that the scan finds must be found by steno, at its event or at another
one with the same text, and nothing else may be found. Needs the package `regex`, for Unicode's properties.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata
from collections import Counter

import regex

CJK = r"[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0002fa1f]"
WORD = regex.compile(rf"(?P<cjk>{CJK})|(?:(?!{CJK})[\p{{Alphabetic}}\p{{N}}])+")
ESCAPES = regex.compile(r"\x1b(?:\[[^@-~\x00-\x1f]*(?:[@-~\x00-\x1f]|$)|\][^\x07\x1b]*(?:\x07|(?=\x1b)|$)|\\)?")
KINDS = ["prompt", "answer", "thought", "command", "output"]


# What docs/search.md calls a text, read from the events of a transcript.


def leaves(value):
    """The strings and numbers of a JSON value, in order; numbers as they are written."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Number):
        yield value.text
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from leaves(each)


class Number:
    def __init__(self, text):
        self.text = text


def decode(line):
    # Names that occur twice in one object would be lost in a dictionary, but no agent writes them.
    return json.loads(line, parse_int=Number, parse_float=Number)


def output_text(value, error):
    """The text of an output, or None where the document does not say how it looks (pictures, objects)."""
    if isinstance(value, dict) and isinstance(value.get("content"), list):
        value = value["content"]
    if isinstance(value, list):
        if not all(isinstance(block, dict) and block.get("type") == "text" for block in value):
            return None
        value = "\n".join(block["text"] for block in value)
    if value in (None, ""):
        value = error or ""
    return ESCAPES.sub("", value) if isinstance(value, str) else None


def texts_of(event):
    """Pairs of kind and text; a text of None is one that this program cannot know."""
    payload = event["payload"]
    if event["type"] in ("message.user", "message.assistant"):
        speaker = "prompt" if event["type"] == "message.user" else "answer"
        for block in payload.get("blocks", []):
            kind, text = {
                "text": (speaker, block.get("text")),
                "stream": (speaker, block.get("chunk") or block.get("text")),
                "thinking": ("thought", block.get("thinking")),
                "command": ("command", block.get("command")),
                "tool_result": ("output", output_text(block.get("tool_content"), None)),
            }.get(block.get("type"), (None, None))
            if kind:
                yield kind, text or None
    elif event["type"] == "tool.call":
        yield "command", "\n".join(leaves(payload.get("input")))
    elif event["type"] == "tool.result":
        yield "output", output_text(payload.get("output"), payload.get("error"))
    elif event["type"] == "run.started" and payload.get("kind") == "command":
        yield "command", "\n".join(leaves(payload.get("wrap", {}).get("command")))
    elif event["type"] == "step.completed" and payload.get("kind") in ("error", "retry", "turn"):
        error = payload.get("error")
        was_stopped = payload["kind"] == "turn" and error in ("interrupted", "aborted")
        if error not in (None, "", False) and not was_stopped:
            yield "output", ESCAPES.sub("", error) if isinstance(error, str) else None
    elif event["type"] == "step.completed" and payload.get("kind") == "command":
        result = payload.get("result")
        streams = ("stdout", "stdout_end", "stderr", "stderr_end")
        printed = [result[name] for name in streams if isinstance(result, dict) and isinstance(result.get(name), str)]
        yield "output", "\n".join(output_text(text, None) for text in printed) if printed else None


class Text:
    def __init__(self, event, kind, text):
        self.place = (event["run_id"], int(event["seq"].text), kind)
        has_tool = event["type"].startswith("tool.") or event["payload"].get("kind") == "command"
        self.kind, self.tool = kind, event["payload"].get("name", "") if has_tool else None
        self.text = unicodedata.normalize("NFC", text)
        self._words = None

    @property
    def words(self):
        """Words in lower case, None where the next word does not follow the one before, and all words and parts."""
        if self._words is None:
            self._words = words_of(self.text)
        return self._words


def words_of(text):
    sequence, single, last = [], set(), None
    for match in WORD.finditer(text):
        word = match[0]
        if last is not None and last[0] and match["cjk"] and last[1] != match.start():
            sequence.append(None)
        last = (match["cjk"], match.end())
        sequence.append(word.lower())
        single.add(word.lower())
        single.update(part.lower() for part in parts(word) if len(part) >= 2)
    return sequence, single


def parts(word):
    cuts = [0]
    for at in range(1, len(word)):
        before, this, after = word[at - 1], word[at], word[at + 1 : at + 2]
        upper = lambda char: bool(regex.match(r"\p{Uppercase}", char))
        digit = lambda char: bool(regex.match(r"\p{N}", char))
        if (
            (upper(this) and not upper(before))
            or (upper(this) and upper(before) and after and regex.match(r"\p{Lowercase}", after))
            or digit(this) != digit(before)
        ):
            cuts.append(at)
    return [word[start:end] for start, end in zip(cuts, cuts[1:] + [len(word)])]


# What a query means.


def phrase(words, prefix=False):
    def holds(text):
        sequence, single = text.words
        if len(words) == 1 and not prefix:
            return words[0] in single
        if len(words) == 1:
            cjk = regex.match(CJK, words[0])
            return words[0] in single if cjk else any(each.startswith(words[0]) for each in single)
        for start in range(len(sequence) - len(words) + 1):
            if sequence[start : start + len(words) - 1] != words[:-1]:
                continue
            last = sequence[start + len(words) - 1]
            if last == words[-1] or (prefix and last and not regex.match(CJK, words[-1]) and last.startswith(words[-1])):
                return True
        return False

    return holds


def exact(wanted):
    wanted = unicodedata.normalize("NFC", wanted)
    return lambda text: wanted in text.text


def expression(pattern):
    compiled = regex.compile(pattern, regex.MULTILINE | regex.V1)
    return lambda text: compiled.search(text.text) is not None


def within(kinds):
    return lambda text: text.kind in kinds


def tool(name):
    return lambda text: text.tool is not None and name.lower() in text.tool.lower()


def plain_words(text):
    return [word for word in words_of(text)[0] if word]


def together(words):
    """The words as a text in which each follows the one before: CJK characters without a space."""
    return regex.sub(rf"(?<={CJK}) (?={CJK})", "", " ".join(words))


class Queries:
    """Makes queries from texts, each with its arguments and the conditions that must hold."""

    def __init__(self, texts, seed):
        self.random, self.texts = random.Random(seed), texts
        self.unusual = [text for text in texts if regex.search(CJK, text.text) or '"' in text.text]

    def text(self):
        return self.random.choice(self.unusual if self.random.random() < 0.3 else self.texts)

    def some_words(self, count):
        while True:
            words = plain_words(self.text().text[:20_000])
            if len(words) >= count:
                start = self.random.randrange(len(words) - count + 1)
                return words[start : start + count]

    def word(self):
        word = self.some_words(1)[0]
        return [word], [phrase(plain_words(word))]

    def part(self):
        while True:
            found = [part for match in WORD.finditer(self.text().text[:20_000]) for part in parts(match[0]) if len(part) > 1]
            if found:
                part = self.random.choice(found)
                return [part.upper() if self.random.random() < 0.2 else part], [phrase([part.lower()])]

    def words_together(self):
        words = self.some_words(self.random.choice([2, 2, 3, 4]))
        return [f'"{together(words)}"'], [phrase(words)]

    def two_words(self):
        words = self.some_words(12) if self.random.random() < 0.5 else self.some_words(2)
        chosen = [words[0], words[-1]]
        return chosen, [phrase([word]) for word in chosen]

    def prefix(self):
        words = self.some_words(self.random.choice([1, 1, 2]))
        words[-1] = words[-1][: self.random.randint(1, len(words[-1]))]
        # A single letter that is no part of a longer word would ask for nearly all texts.
        if len(words) == 1 and len(words[0]) < 2:
            words[0] = words[0] * 2
        written = f'"{together(words)}"*' if len(words) > 1 else f"{words[0]}*"
        return [written], [phrase(words, prefix=True)]

    def path(self):
        while True:
            found = regex.findall(r"\w+(?:[/.\-]\w+)+", self.text().text[:20_000], regex.ASCII)
            if found:
                path = self.random.choice(found)
                return [path], [phrase(plain_words(path))]

    def piece(self, shortest, longest):
        while True:
            text = self.text().text
            length = self.random.randint(shortest, longest)
            if len(text) >= length:
                start = self.random.randrange(len(text) - length + 1)
                piece = text[start : start + length]
                if "\0" not in piece and not regex.search(r"\p{Cs}", piece) and piece.strip():
                    return piece

    def exactly(self):
        piece = self.piece(3, 30)
        return ["--exact", "--", piece], [exact(piece)]

    def expression(self):
        words = self.some_words(2)
        first, second = (regex.escape(word) for word in words)
        pattern = self.random.choice([
            rf"{first}\W+{second}",
            rf"(?i){first}",
            rf"\b{first}[a-z_]*\b",
            rf"^\s*{first}",
            rf"{second}$",
            rf"(?i:{first}|{second})[^a-z]",
            r"\w+Error\b",
            rf"{first[:3]}\w{{2,5}}\(",
            r"[\p{Han}\p{Hiragana}]{2,}",
            r"[\x00-\x08\x0e-\x1f]",
            r"\"[^\"\n]{3,12}\"",
            rf"line \d+, in {first}",
        ])
        return [f"/{pattern}/"], [expression(pattern)]

    def cjk(self):
        texts = [text for text in self.unusual if regex.search(CJK, text.text)]
        run = self.random.choice(regex.findall(CJK + "+", self.random.choice(texts).text))
        start = self.random.randrange(len(run))
        chosen = run[start : start + self.random.randint(1, 4)]
        return [chosen], [phrase(list(chosen))]

    def limited(self):
        query, conditions = self.random.choice([self.word, self.words_together, self.prefix, self.expression])()
        if self.random.random() < 0.5:
            kinds = self.random.sample(KINDS, self.random.randint(1, 3))
            return [*query, "in:" + ",".join(kinds)], [*conditions, within(kinds)]
        names = sorted({text.tool for text in self.texts if text.tool and regex.fullmatch(r"\w+", text.tool)})
        name = self.random.choice(names)
        return [*query, "tool:" + name.lower()], [*conditions, tool(name)]

    def each(self, count):
        makers = [self.word, self.part, self.words_together, self.two_words, self.prefix, self.path, self.exactly,
                  self.expression, self.cjk, self.limited]
        for number in range(count):
            yield makers[number % len(makers)]()


# A session with texts that are easily got wrong.

UNUSUAL = [
    ("user", "ログイン画面のバグを直してください。東京都、京都市。登录页面的错误，修复登录！ 로그인 버그"),
    ("assistant", 'Say "hello", then \'bye\'; a \\"quoted\\" \\\\ backslash, tab\there, bell\u0007, escape\u001b[31mred\u001b[0m, del\u007f.'),
    ("assistant", "Cafe\u0301 and café, STRASSE and straße, İstanbul, ΣΊΣΥΦΟΣ, ﬁle, x² ½ Ⅷ, naïve, हिन्दी, ไทย, ①②, 한글"),
    ("user", "parseHTTPResponse snake_case_name kebab-case-name HTTPServer2 utf8Decode v1.2.3 a_b_c iOS XMLHttpRequest2x i18n"),
    ("assistant", "src/auth/login.rs:42:7 C:\\Users\\dev\\main.rs https://example.org/a?b=c&d=%20e foo::bar<Baz>() a+b=c $HOME/.x #tag @you"),
    ("assistant", "line one\nline two\r\nline three\n\n\tlast line 🦀👩‍👩‍👧 end\u00a0of\u200btext \u2028 separator"),
    ("user", "<tag attr=\"x\">&amp; {\"json\": [1, 2.50, -3e4, true, null]} \u0001\u0002 日本語テキスト処理mixed漢字with英語latin文字"),
]


def write_unusual(home):
    directory = home / ".claude/projects/-srv-unusual"
    directory.mkdir(parents=True)
    session, lines, parent = "6f1c9f5e-52c3-4e0a-9a55-0d5a3f1f7b01", [], None
    for number, (role, text) in enumerate(UNUSUAL):
        content = text if role == "user" else [{"type": "text", "text": text}]
        message = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"msg_{number}", "type": "message", "model": "claude-opus-4-1", "usage": {"input_tokens": 1, "output_tokens": 1}}
        own = f"00000000-0000-4000-8000-{number:012}"
        lines.append({"type": role, "uuid": own, "parentUuid": parent, "sessionId": session, "cwd": "/srv/unusual",
                      "version": "2.0.1", "timestamp": f"2026-10-01T10:00:{number:02}.000Z", "message": message})
        parent = own
    body = "".join(json.dumps(line, ensure_ascii=number % 2 == 0) + "\n" for number, line in enumerate(lines))
    (directory / f"{session}.jsonl").write_text(body)


def read_store(store):
    """All texts, places with a text that only steno can make, and runs that are merged with others into a session."""
    texts, unknown, sessions = [], set(), {}
    for path in sorted(each for each in pathlib.Path(store, "transcripts").glob("*.jsonl") if each.stem.count(".") == 0):
        for line in path.read_bytes().split(b"\n"):
            if not line:
                continue
            event = decode(line)
            if event["type"] == "run.started":
                sessions[event["run_id"]] = event.get("session_run_id", event["run_id"])
            if any(block.get("label") == "system_prompt" for block in event["payload"].get("blocks", [])):
                continue
            for kind, text in texts_of(event):
                if text is None:
                    unknown.add((event["run_id"], int(event["seq"].text), kind))
                elif text:
                    texts.append(Text(event, kind, text))
    runs = Counter(sessions.values())
    return texts, unknown, {run for run, session in sessions.items() if runs[session] > 1}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("steno")
    parser.add_argument("dirs", nargs="*")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = pathlib.Path(scratch, "home")
        write_unusual(home)
        os.environ |= {"STENO_HOME": f"{scratch}/store", "HOME": str(home), "NO_COLOR": "1"}

        def steno(*words):
            said = subprocess.run([args.steno, *words], capture_output=True)
            # 1 is the exit code of a search that finds nothing.
            if said.returncode not in (0, 1):
                sys.exit(f"{words}: {said.stderr.decode()}")
            return said.stdout

        steno("import", str(home), *args.dirs)
        texts, unknown, merged = read_store(f"{scratch}/store")
        by_place = {}
        for text in texts:
            by_place.setdefault(text.place, []).append(text)
        print(f"{len(texts)} texts in {len({text.place[0] for text in texts})} runs:", dict(Counter(text.kind for text in texts)),
              f"{len(merged)} runs in sessions with several")
        bad, hits, empty = 0, 0, 0
        for query, conditions in Queries(texts, args.seed).each(args.queries):
            found = set()
            for line in steno("search", "--json", "--limit", "0", "--hits", "0", *query).splitlines():
                hit = json.loads(line)
                if hit["type"] == "hit":
                    found.add((hit["run_id"], hit["seq"], hit["kind"]))
            wanted = [text for text in texts if all(holds(text) for holds in conditions)]
            places = {text.place for text in wanted}
            found_texts = {(text.kind, text.text) for place in found for text in by_place.get(place, [])}
            # A session of several runs has each text in the words of one of them.
            missed = [text for text in wanted if text.place not in found and (text.kind, text.text) not in found_texts
                      and text.place[0] not in merged]
            other = [place for place in found if place not in places and place not in unknown]
            hits, empty = hits + len(found), empty + (not found)
            if missed or other:
                bad += 1
                print(f"DIFFERENT {query!r}: {len(found)} found, {len(missed)} missed, {len(other)} others")
                for text in missed[:2]:
                    print("   missed", text.place, repr(text.text[:200]))
                for place in other[:2]:
                    print("   other", place, [repr(text.text[:200]) for text in by_place.get(place, [])])
        print(f"{args.queries} queries, {hits} hits, {empty} queries without a hit, {bad} different")
        sys.exit(bad != 0)


main()
