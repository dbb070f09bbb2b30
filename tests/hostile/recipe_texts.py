"""Generators of recipes with odd files, bytes, tags, keys, names and secrets."""

from __future__ import annotations

import os
from random import Random

from tests.hostile.attempts import SECRET, SECRET_NAME, Attempt
from tests.hostile.recipe_parts import GROUP, HEAD, HOSTILE, READERS, attempt_of, command, hostile_text


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
    return attempt_of("tag", place.replace("TAG", f"{tag} {value}"), random)


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
    attempt = attempt_of("secret", f"name: {SECRET_NAME}\n" + place.replace("READ", read), random)
    return Attempt(GROUP, "secret", attempt.argv, attempt.files, variables={SECRET_NAME: SECRET})
