"""Generators of hostile recipes: each makes any number of attempts from a random number generator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import cycle
from random import Random

from tests.hostile.attempts import SECRET, SECRET_NAME, Attempt

GROUP = "recipes"
HEAD = "distillation: {max_num_steps: 10}\npolicy: {model_name: org/student, precision: bfloat16}\n"
HOSTILE = "\x00\x07\x1b\x7f\x85\x90\x9b\x9d\u061c\u200b\u200f\u2028\u2029\u202e\u2066\ufeff\U000e0041\ud800\udcff\r\n\t"
"""Characters that a terminal obeys, that turn the direction of text, that are not seen, or that are no text."""
PLACE = r"[^\n]*:\d+"
"""Pattern of a file and a line."""
READERS: tuple[tuple[str, ...], ...] = (
    ("recipe", "resolve", "--json"),
    ("recipe", "resolve"),
    ("recipe", "get", "KEY"),
    ("recipe", "get", "KEY", "--effective"),
    ("recipe", "show", "--effective"),
    ("recipe", "show", "--expand"),
    ("recipe", "origin", "KEY"),
    ("recipe", "lint"),
    ("recipe", "set", "zz", "5"),
    ("recipe", "unset", "policy.precision"),
    ("check",),
    ("memory",),
)


def command(reader: tuple[str, ...], file: str, key: str = "a") -> tuple[str, ...]:
    """Return the arguments of a command for a file and a key."""
    words = 2 if reader[0] == "recipe" else 1
    return (*reader[:words], file, *(key if word == "KEY" else word for word in reader[words:]))


def _of(kind: str, text: str, random: Random, refused: str = "", **more: bytes) -> Attempt:
    argv = command(random.choice(READERS), "r.yaml")
    refused = "" if argv[0] == "check" else refused  # it reports the error as a finding
    files = {"r.yaml": (HEAD + text).encode("utf-8", "surrogatepass"), **more}
    return Attempt(GROUP, kind, argv, files, refused=refused)


def special_files(random: Random) -> Attempt:
    """Return something that is no regular file, as the recipe or as a parent of it."""
    target = random.choice(
        (
            "fifo",
            "socket",
            "directory",
            "loop",
            "sparse",
            "-> /dev/zero",
            "-> /dev/tty",
            "-> /proc/kmsg",
            "-> /proc/self/mem",
            "-> /proc/self/environ",
            "-> /sys/kernel/notes",
            "-> nowhere",
            "-> .",
        )
    )
    argv = list(command(random.choice(READERS), "r.yaml"))
    if random.random() < 0.5:
        return Attempt(GROUP, "special file", tuple(argv), special={"r.yaml": target}, refused="r.yaml")
    line = random.choice(("defaults: x.yaml\n", "defaults: [b.yaml, x.yaml]\n", "defaults: ./d/../x.yaml\n"))
    written = any(word in argv for word in ("set", "unset", "--json", "get", "show"))
    files = {"r.yaml": (HEAD + line).encode(), "b.yaml": b"b: 1\n"}
    refused = "" if written or argv[0] == "check" else "r.yaml"
    return Attempt(GROUP, "special parent", tuple(argv), files, {"x.yaml": target}, refused)


def interpolation_bombs(random: Random) -> Attempt:
    """Return texts, sections or numbers that double from line to line."""
    levels, width = random.randint(8, 40), random.randint(2, 12)
    form = random.choice(
        ("${NAME}", "${.NAME}", "${ NAME }", "${oc.select:NAME}", "${oc.select: NAME,1}", "x${NAME}")
    )
    kind = random.choice(("text", "section", "list", "product", "chain", "repeat", "call"))
    lines = ["k0: " + {"section": "{x: 1}", "list": "[1, 2]", "product": "99999999"}.get(kind, "xxxxxxxxxx")]
    if kind == "chain":
        levels, width = random.randint(30, 3000), 1
    for level in range(1, levels):
        inner = form.replace("NAME", f"k{level - 1}")
        lines.append(
            f"k{level}: "
            + {
                "text": inner * width,
                "section": "{" + ", ".join(f"x{number}: '{inner}'" for number in range(width)) + "}",
                "list": "[" + ", ".join([f"'{inner}'"] * width) + "]",
                "product": f"${{mul:{inner},{inner}}}",
                "chain": inner,
                "repeat": f"${{mul:{inner},{random.choice((1000, 10**9, 10**30))}}}",
                "call": f"${{oc.create:{{a: {inner}, b: {inner}}}}}",
            }[kind]
        )
    return _of("interpolation bomb", "\n".join([*lines, f"a: ${{k{levels - 1}}}"]) + "\n", random)


def odd_interpolations(random: Random) -> Attempt:
    """Return interpolations that are cut, nested, recursive or full of brackets."""
    pieces = (
        "${",
        "}",
        "a",
        "..",
        ":",
        ",",
        "[",
        "]",
        "{",
        "$",
        "\\",
        "'",
        "mul",
        "oc.env",
        "oc.decode",
        " ",
        "1",
        "²",
    )
    text = "".join(random.choice(pieces) for _ in range(random.randint(1, 60)))
    text = random.choice(
        (text, "${" + text + "}", "${a:" * random.randint(1, 2000), "${x:" + "[" * random.randint(1, 900))
    )
    return _of("odd interpolation", f"a: '{text.replace(chr(39), '')}'\n", random)


def alias_bombs(random: Random) -> Attempt:
    """Return aliases of aliases, in lists, mappings and merges."""
    levels, width = random.randint(8, 60), random.randint(2, 9)
    first = random.choice(("[x, x]", "{x: 1}", "'" + "y" * random.choice((10, 60_000)) + "'"))
    lines = [f"k0: &k0 {first}"]
    for level in range(1, levels):
        inner = f"*k{level - 1}"
        if random.random() < 0.3 and first == "{x: 1}":
            lines.append(f"k{level}: &k{level}\n  <<: {inner}\n  y{level}: {inner}")
        else:
            lines.append(f"k{level}: &k{level} [{', '.join([inner] * width)}]")
    refused = PLACE if width**levels > 10**7 and "<<" not in "".join(lines) else ""
    return _of("alias bomb", "\n".join([*lines, f"a: *k{levels - 1}"]) + "\n", random, refused)


def diamonds(random: Random) -> Attempt:
    """Return parents that are named many times over, on many levels, or in a circle."""
    levels, width = random.randint(2, 60), random.randint(1, 60)
    files = {"d0.yaml": HEAD.encode() + b"a: 1\n"}
    for level in range(1, levels):
        parents = ", ".join([f"d{level - 1}.yaml"] * width)
        files[f"d{level}.yaml"] = (
            f"defaults: [{parents}]\nk{level}: {random.choice(('1', '${a}', '${oc.select:a}'))}\n".encode()
        )
    if random.random() < 0.3:
        files["d0.yaml"] = f"defaults: d{levels - 1}.yaml\n".encode()
    argv = command(random.choice(READERS), f"d{levels - 1}.yaml")
    return Attempt(GROUP, "diamond", argv, files)


def expanded_sections(random: Random) -> Attempt:
    """Return keys that are merged into many interpolated copies of a large section."""
    size, copies = random.choice(((50, 20), (2000, 2000), (5000, 4000)))
    base = "big: {" + ", ".join(f"x{number}: 1" for number in range(size)) + "}\n"
    base += "".join(f"j{number}: ${{big}}\n" for number in range(copies))
    own = "defaults: p.yaml\na: 1\n" + "".join(f"j{number}: {{z: 1}}\n" for number in range(copies))
    argv = command(random.choice(READERS[:7]), "r.yaml")
    return Attempt(
        GROUP, "expanded section", argv, {"p.yaml": (HEAD + base).encode(), "r.yaml": own.encode()}
    )


def numbers(random: Random) -> Attempt:
    """Return numbers of many digits in every notation."""
    length = random.choice((100, 129, 4299, 4301, 20_000, 65_000, 100_000))
    number = random.choice(
        ("9", "0b1", "0x", "-", "0", "1_", "1:", ".", "1e", "!!int ", "!!float ", "!!int 0x", "+")
    )
    digits = random.choice(("1", "9", "0", "7_", "59:", "f")) * length
    place = random.choice(("a: NUMBER\n", "NUMBER: 1\na: 1\n", "a: [NUMBER]\n", "a: ${add:NUMBER,1}\n"))
    return _of("number", place.replace("NUMBER", number + digits[:length]), random)


def large_texts(random: Random) -> Attempt:
    """Return texts and comments that are long, or lines that are expensive to look at."""
    unit = random.choice(
        ("x", "\"'", "? ", "é", "# ", "'\"# ", "\\u0041", "${", "- ", "[", "a: ", "\u2028", "*", "&a ")
    )
    size = random.choice((60_000, 70_000, 900_000, 1_100_000))
    text = (unit * (size // len(unit) + 1))[:size]
    style = random.choice(
        (
            "a: 'TEXT'\n",
            'a: "TEXT"\n',
            "a: |\n  TEXT\n",
            "a: >-\n  TEXT\n",
            "#TEXT\na: 1\n",
            "TEXT: 1\n",
            "TEXT",
        )
    )
    return _of("large text", style.replace("TEXT", text), random)


def many_values(random: Random) -> Attempt:
    """Return more values than a recipe may have, in every form."""
    count = random.choice((19_000, 45_000, 250_000))
    form = random.choice(("[],", "x, ", "{}, ", "{a: }, ", "'',"))
    texts = ("a: [" + form * count + "]\n", "a:\n" + "- \n" * count, "---\n" * count, "k: 1\n" * count)
    keys = "a: 1\n" + "".join(f"k{number}: {number}\n" for number in range(min(count, 40_000)))
    text = random.choice((*texts, keys))[:1_000_000]
    return _of("many values", text, random, PLACE if count > 40_000 and text.startswith("a: [") else "")


def nesting(random: Random) -> Attempt:
    """Return nested mappings and lists, up to far too deep."""
    depth = random.choice((38, 41, 60, 199, 1000, 20_000))
    opening = random.choice(("[", "{a: ", "[{a: ", "- ", "? "))
    closing = {"[": "]", "{a: ": "}", "[{a: ": "}]"}.get(opening, "")
    block = "".join("  " * level + f"a{level}:\n" for level in range(min(depth, 900)))
    text = random.choice(("a: " + opening * depth + closing * depth + "\n", "a: " + opening * depth, block))
    return _of("nesting", text, random, PLACE if depth > 50 else "")


def tags(random: Random) -> Attempt:
    """Return explicit tags with values that they cannot have."""
    names = (
        "int",
        "float",
        "bool",
        "null",
        "str",
        "binary",
        "timestamp",
        "set",
        "omap",
        "pairs",
        "merge",
        "value",
        "map",
    )
    tag = random.choice(
        (
            f"!!{random.choice(names)}",
            f"!<tag:yaml.org,2002:{random.choice(names)}>",
            "!",
            "!x",
            "!!python/name:os.system",
            "!!python/object/apply:os.system",
            "!!python/object/apply:pathlib.Path",
            "!!python/object/new:eval",
        )
    )
    value = random.choice(
        (
            "",
            "''",
            '""',
            "x",
            "???",
            "[a]",
            "{a: 1}",
            "0b_",
            "1e999",
            "-",
            ".",
            "aGk=",
            "aGk",
            '"\\ud800"',
            "*a",
            "2020-13-45",
            "1" * 5000,
            "0x",
            "[touch pwned]",
            "~",
        )
    )
    place = random.choice(("a: TAG\n", "? TAG\n: 1\n", "a: [TAG]\n", "a: {<<: TAG}\n", "defaults: TAG\n"))
    return _of("tag", place.replace("TAG", f"{tag} {value}"), random)


def mutations(random: Random) -> Attempt:
    """Return a recipe with bytes changed, cut, doubled or put in."""
    data = bytearray(
        HEAD.encode()
        + b"a: &A {b: 1, c: [x, 'y', \"z\"]}\nd:\n  <<: *A\n  e: ${a.b}\n  f: |\n    text\n# comment\ng: 1e-5\n"
    )
    for _ in range(random.randint(1, 8)):
        position = random.randrange(len(data))
        match random.randrange(4):
            case 0:
                data[position] = random.randrange(256)
            case 1:
                del data[position : position + random.randint(1, 20)]
            case 2:
                data[position:position] = random.choice(HOSTILE).encode("utf-8", "surrogatepass")
            case _:
                data[position:position] = data[position : position + 30] * random.randint(1, 3)
        if not data:
            data += b"a"
    return Attempt(GROUP, "mutation", command(random.choice(READERS), "r.yaml"), {"r.yaml": bytes(data)})


def hostile_text(random: Random, length: int = 12) -> str:
    """Return a short text with characters that must not reach a terminal."""
    letters = [
        random.choice(("a", "b", "é", "中", "\x1b[2J", "\x1b]52;c;eHg=\x07", *HOSTILE)) for _ in range(length)
    ]
    return "".join(letters)


def hostile_keys(random: Random) -> Attempt:
    """Return keys, values and overrides with such characters, or that are far too long."""
    key = random.choice(
        (
            hostile_text(random),
            "a." * random.randint(1, 3000),
            "²",
            "0" * 5000,
            '"' + hostile_text(random) + '"',
        )
    )
    key = key.replace("\x00", "")
    value = random.choice(
        (hostile_text(random).replace("\x00", ""), "1" * 5000, "[" * 3000, "${a" * 500, "-5e-6", "!!int ''")
    )
    argv = random.choice(
        (
            ("recipe", "get", "r.yaml", key),
            ("recipe", "origin", "r.yaml", key),
            ("recipe", "unset", "r.yaml", key),
            ("recipe", "set", "r.yaml", key, value),
            ("recipe", "set", "r.yaml", "policy.x", value),
            ("recipe", "comment", "r.yaml", "policy", value),
            ("recipe", "insert", "r.yaml", "policy", key, value),
            ("recipe", "insert", "r.yaml", "items", key, value),
            ("recipe", "resolve", "r.yaml", f"++{key}={value}"),
            ("recipe", "resolve", "r.yaml", f"++policy.x={value}"),
            ("check", "r.yaml", f"++policy.model_name={value}"),
        )
    )
    argv = (*argv[:2], "--", *argv[2:]) if argv[0] == "recipe" else argv
    return Attempt(GROUP, "key or value", argv, {"r.yaml": HEAD.encode() + b"items: [1, 2]\n"})


def hostile_names(random: Random) -> Attempt:
    """Return recipes and parents whose names hold such characters."""
    name = hostile_text(random, 6).translate({0: None, ord("/"): None, 0xD800: None})
    raw = os.fsencode(name)[:200]
    name = os.fsdecode(raw) or "x"
    name = "x" if name in (".", "..") else name
    kind = random.choice(("file", "missing", "parent", "model"))
    argv = command(random.choice(READERS), name if kind in ("file", "missing") else "r.yaml")
    text = "a: 1\nbroken: [\n" if random.random() < 0.5 else "a: 1\n"
    quoted = '"' + "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else c for c in name) + '"'
    files = {"r.yaml": HEAD.encode()}
    if kind == "file":
        files = {name: (HEAD + text).encode()}
    elif kind == "parent":
        files["r.yaml"] = f"{HEAD}defaults: {quoted}\n".encode("utf-8", "surrogatepass")
    elif kind == "model":
        files["r.yaml"] = f"distillation: {{}}\na: 1\npolicy: {{model_name: {quoted}}}\n".encode(
            "utf-8", "surrogatepass"
        )
    argv = (*argv[:1], "--", *argv[1:]) if argv[0] != "recipe" else (*argv[:2], *argv[3:], "--", argv[2])
    return Attempt(GROUP, f"name ({kind})", argv, files)


def secrets(random: Random) -> Attempt:
    """Return recipes that read a secret variable in one of many ways."""
    read = random.choice(
        (
            f"${{oc.env:{SECRET_NAME}}}",
            f"${{oc.env:{SECRET_NAME},x}}",
            f"${{oc.env: '{SECRET_NAME}'}}",
            "${oc.env:${name}}",
            f"${{oc.decode:${{oc.env:{SECRET_NAME}}}}}",
            f"pre-${{oc.env:{SECRET_NAME}}}-post",
            "${add:${oc.env:${name}},x}",
        )
    )
    place = random.choice(
        (
            "a: READ\n",
            "a: {b: READ}\n",
            "s: READ\na: ${s}\n",
            "s: {t: READ}\na: ${s}\n",
            "s: READ\na: 'x ${s}'\n",
            "s: &s READ\na: *s\n",
            "a: 1\ndefaults: READ\n",
            "a: 1\nd: {READ: 1}\n",
            "a: 1\ns: 'READ'\nt: [x, '${s}']\n",
            "a: 1\ns: {_override_: true, x: READ}\n",
            "a: 1\ndata: {train: {data_path: READ}}\n",
            "a: ${nowhere.READ}\n",
        )
    )
    attempt = _of("secret", f"name: {SECRET_NAME}\n" + place.replace("READ", read), random)
    return Attempt(GROUP, "secret", attempt.argv, attempt.files, variables={SECRET_NAME: SECRET})


KINDS: tuple[Callable[[Random], Attempt], ...] = (
    special_files,
    interpolation_bombs,
    odd_interpolations,
    alias_bombs,
    diamonds,
    numbers,
    nesting,
    tags,
    mutations,
    hostile_keys,
    hostile_names,
    secrets,
)
LARGE: tuple[Callable[[Random], Attempt], ...] = (large_texts, many_values, expanded_sections)
"""Generators whose attempts take seconds each."""


def recipe_attempts(
    count: int, seed: int, kinds: tuple[Callable[[Random], Attempt], ...] = KINDS
) -> Iterator[Attempt]:
    """Yield attempts of each kind in turn."""
    random = Random(seed)
    for _, kind in zip(range(count), cycle(kinds), strict=False):
        yield kind(random)
