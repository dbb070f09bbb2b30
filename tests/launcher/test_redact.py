"""What is taken out of a text before it leaves the user's hands, rule by rule, and what is left alone."""

from __future__ import annotations

import pytest

from launcher.monitor.redact import REMOVED, Redactor

REDACT = Redactor()
LETTERS = "AbCdEfGhIj"


@pytest.mark.parametrize(
    "key",
    [
        # The shortest that counts of each maker's form; put together so that no scanner takes them for real.
        "hf" + "_" + LETTERS,
        *[f"gh{kind}" + "_" + "a1B2" * 4 for kind in "opsur"],
        "github" + "_pat_" + "a_1B" * 4,
        "glpat" + "-" + "Zz9-Zz9_Zz",
        "sk" + "-" + "x9-X" * 4,
        "nvapi" + "-" + "x9_X" * 4,
        "wandb" + "_v1_" + "x9_X" * 4,
        *[f"xox{kind}" + "-" + "1-2-3-4-5-" for kind in "abprs"],
        "AKIA" + "A1B2C3D4E5F6",
        "AIza" + "Ab-1_" * 4,
        "eyJ" + "abcd-_12" + "." + "efgh-_34",
        "eyJ" + "abcd-_12" + "." + "efgh-_34" + "." + "sig-_",
        "0123456789" * 4,
        "abcdef0123456789" * 4,
    ],
)
def test_keys_of_a_known_form(key: str) -> None:
    assert REDACT(f"it is {key}, they say") == f"it is {REMOVED}, they say"
    assert REDACT(f"({key})") == f"({REMOVED})"


def test_the_kind_of_authorization_stays() -> None:
    assert REDACT("x Bearer abc.DEF_~+/=- y") == f"x Bearer {REMOVED} y"
    assert REDACT("basic QWxhZGRp") == f"basic {REMOVED}"
    assert REDACT("Bearer abc") == "Bearer abc"


@pytest.mark.parametrize("login", ["u:p", "carla:sword@", ":secret", "abcdefgh"])
def test_logins_in_addresses(login: str) -> None:
    login = login.rstrip("@")
    assert REDACT(f"http://{login}@host:80/x") == f"http://{REMOVED}@host:80/x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HF_TOKEN=abcd", f"HF_TOKEN={REMOVED}"),
        ("my_secret: abcd efgh", f"my_secret: {REMOVED} efgh"),
        ("password = 'abcd', x", f"password = '{REMOVED}', x"),
        ("PASSWD=abcd", f"PASSWD={REMOVED}"),
        ("passphrase=abcd", f"passphrase={REMOVED}"),
        ('{"api_key": "abcd", "other": 1}', f'{{"api_key": "{REMOVED}", "other": 1}}'),
        ("api-key=abcd;apikey=abcd", f"api-key={REMOVED};apikey={REMOVED}"),
        ("access_key=abcd&access-key=abcd", f"access_key={REMOVED}&access-key={REMOVED}"),
        ("credential=abcd credentials=abcd", f"credential={REMOVED} credentials={REMOVED}"),
        ("Authorization: abcd", f"Authorization: {REMOVED}"),
        ("--db-password abcd --nodes 2", f"--db-password {REMOVED} --nodes 2"),
        ("--token  'abcd' x", f"--token  '{REMOVED}' x"),
        ("WANDB_KEY=abcd A_PW=abcd B_PASS=abcd", f"WANDB_KEY={REMOVED} A_PW={REMOVED} B_PASS={REMOVED}"),
        ("C_PAT=abcd", f"C_PAT={REMOVED}"),
        ("'X_KEY': 'abcd'", f"'X_KEY': '{REMOVED}'"),
    ],
)  # fmt: skip
def test_values_whose_name_tells_what_they_are(text: str, expected: str) -> None:
    assert REDACT(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "token=abc", "x_key=abcd", "secretary: none", "the token abcd", "ahf_" + LETTERS,
        "hf_" + LETTERS[:9], "in /x/" + "0123456789" * 4, "0123456789" * 4 + ".py", "a-" + "0123456789" * 4,
        "0123456789abcdef0123456789abcdef012345", "http://a@host", "user@host", "--nodes 2222", "a:b@c",
        "weights in /models/hf_checkpoint", "hf_checkpoint2024 of hf_convertedcheckpoints",
    ],
)  # fmt: skip
def test_what_is_left_alone(text: str) -> None:
    assert REDACT(text) == text


def test_what_is_removed_is_not_removed_again() -> None:
    once = REDACT("HF_TOKEN=abcdefgh --token abcdefgh http://u:p@h a.b@c.de")
    assert REDACT(once) == once


def test_addresses_of_mail() -> None:
    assert REDACT("from carla.c+x@fz-example.de, to a@b.c.org") == f"from {REMOVED}, to {REMOVED}"


def test_private_keys_whole_or_cut() -> None:
    begin, end = "-----BEGIN RSA PRIVATE" + " KEY-----", "-----END RSA PRIVATE" + " KEY-----"
    assert REDACT(f"a\n{begin}\nxx\nyy\n{end}\nb") == f"a\n{REMOVED}\nb"
    assert REDACT(f"a\n{begin}\nxx\nyy") == f"a\n{REMOVED}"
    inside = "b3BlbnNzaC1rZXktdjEA" * 2
    assert REDACT(f"a\n{inside}==\nb") == f"a\n{REMOVED}\nb"
    assert REDACT(f"a\n{inside[:-1]}\nb") == f"a\n{inside[:-1]}\nb"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/carla/x", "/home/USER/x"),
        ("/Users/carla", "/Users/USER"),
        ("/p/home/jusers/carla/juwels", "/p/home/jusers/USER/juwels"),
        ("in /p/home/carla: no", "in /p/home/USER: no"),
        ("('/home/carla', 1)", "('/home/USER', 1)"),
    ],
)
def test_home_directories(text: str, expected: str) -> None:
    assert REDACT(text) == expected


def test_names_that_a_text_tells_are_removed_from_the_next_one_too() -> None:
    redact = Redactor.of(["bob"], ["/data/bob"], ["marmalade"]).having_read("see /home/carla/x, /home/root/y")
    assert redact("carla, bob and root: /data/bob/z marmalade") == f"USER, USER and root: ~/z {REMOVED}"
    assert redact.names == ("carla", "bob")


@pytest.mark.parametrize("name", ["root", "user", "slurm", "ray", "home", "tmp", "jusers", "USER", "ab", ""])
def test_names_that_are_words_of_every_log_are_no_names(name: str) -> None:
    assert Redactor.of([name]).names == ()


def test_a_name_goes_only_where_it_is_a_word() -> None:
    redact = Redactor.of(["bob", "a.b"])
    assert redact("bob bobby Bob abob bob_x /bob/ bob1") == "USER bobby Bob abob USER_x /USER/ bob1"
    assert redact("a.b axb") == "USER axb"


def test_the_longest_goes_first() -> None:
    redact = Redactor.of(
        ["zed", "bob", "bob-smith"],
        ["/work", "/data", "/data/bob/", "/dataX/", "/", "/ab", "/abX"],
        ["vsecret", "secret", "secret-two", "short"],
    )
    assert redact.names[0] == "bob-smith"
    assert sorted(redact.names) == ["bob", "bob-smith", "zed"]
    assert redact.homes[:2] == ("/data/bob", "/dataX")
    assert sorted(redact.homes) == ["/abX", "/data", "/data/bob", "/dataX", "/work"]
    assert redact.secrets == ("secret-two", "vsecret", "secret")
    assert redact("bob-smith") == "USER"
    assert redact("/data/bob/x /data/y") == "~/x ~/y"
    assert redact("secret-two secret short") == f"{REMOVED} {REMOVED} short"
    assert REMOVED == "«removed»"


@pytest.mark.parametrize("lines", [[], [""], ["a"], ["", ""], ["a", "", "b"]])
def test_there_are_as_many_lines_as_before(lines: list[str]) -> None:
    assert REDACT.lines(lines) == lines
