"""Generators of recipes that make much of little: interpolations, aliases, parents, digits, nesting."""

from __future__ import annotations

from random import Random

from tests.hostile.attempts import Attempt
from tests.hostile.recipe_parts import GROUP, HEAD, PLACE, READERS, attempt_of, command


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
    return attempt_of("interpolation bomb", "\n".join([*lines, f"a: ${{k{levels - 1}}}"]) + "\n", random)


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
    return attempt_of("odd interpolation", f"a: '{text.replace(chr(39), '')}'\n", random)


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
    return attempt_of("alias bomb", "\n".join([*lines, f"a: *k{levels - 1}"]) + "\n", random, refused)


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
    return attempt_of("number", place.replace("NUMBER", number + digits[:length]), random)


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
    return attempt_of("large text", style.replace("TEXT", text), random)


def many_values(random: Random) -> Attempt:
    """Return more values than a recipe may have, in every form."""
    count = random.choice((19_000, 45_000, 250_000))
    form = random.choice(("[],", "x, ", "{}, ", "{a: }, ", "'',"))
    texts = ("a: [" + form * count + "]\n", "a:\n" + "- \n" * count, "---\n" * count, "k: 1\n" * count)
    keys = "a: 1\n" + "".join(f"k{number}: {number}\n" for number in range(min(count, 40_000)))
    text = random.choice((*texts, keys))[:1_000_000]
    return attempt_of(
        "many values", text, random, PLACE if count > 40_000 and text.startswith("a: [") else ""
    )


def nesting(random: Random) -> Attempt:
    """Return nested mappings and lists, up to far too deep."""
    depth = random.choice((38, 41, 60, 199, 1000, 20_000))
    opening = random.choice(("[", "{a: ", "[{a: ", "- ", "? "))
    closing = {"[": "]", "{a: ": "}", "[{a: ": "}]"}.get(opening, "")
    block = "".join("  " * level + f"a{level}:\n" for level in range(min(depth, 900)))
    text = random.choice(("a: " + opening * depth + closing * depth + "\n", "a: " + opening * depth, block))
    return attempt_of("nesting", text, random, PLACE if depth > 50 else "")
