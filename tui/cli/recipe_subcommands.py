"""The `recipe` commands of the command table."""

from __future__ import annotations

from tui.cli.spec import (
    ACCEPT_CHANGES,
    DRY_RUN,
    HOST,
    JSON,
    NO_MOUSE,
    OVERRIDES,
    SET_BOTH,
    SET_FIELD,
    Argument,
    Subcommand,
    flag,
)

_READ, _EDIT = "tui.headless.recipe_read", "tui.headless.recipe_edit"
_KEYS, _NEW = "tui.headless.recipe_keys", "tui.headless.recipe_new"
_KEY_FORMAT = 'dotted, list items by number: policy.scheduler.0.kwargs; quote a key with a dot: a."b.c"'

_FILE = Argument("file", "FILE", "recipe")
_EDITED = Argument("file", "FILE", "recipe, edited in place")
_KEY = Argument("key", "KEY", _KEY_FORMAT)
_CHECKOUT = Argument(
    "--checkout",
    "DIR",
    "NeMo-RL checkout, for its keys and recipes (default: $NEMO_RL_ROOT, else the one around FILE)",
)

RECIPE_COMMANDS: tuple[Subcommand, ...] = (
    Subcommand(
        "recipe get",
        "print a value",
        "Print a value as YAML or JSON.",
        f"{_READ}:get",
        (_FILE, _KEY, flag("--effective", "after inheritance and interpolation"), JSON),
        "recipe get recipe.yaml policy.model_name --json",
    ),
    Subcommand(
        "recipe show",
        "print the recipe",
        "Print the recipe's text, or everything that it inherits too.",
        f"{_READ}:show",
        (
            _FILE,
            OVERRIDES,
            flag("--effective", "with inherited values, interpolations resolved", group="form"),
            flag("--expand", "with inherited values, interpolations kept", group="form"),
        ),
        "recipe show recipe.yaml --effective policy.train_micro_batch_size=1",
    ),
    Subcommand(
        "recipe diff",
        "compare two recipes by their effective values",
        "Compare two recipes by their effective values.",
        f"{_READ}:diff",
        (Argument("a", "A", "recipe"), Argument("b", "B", "another recipe"), JSON),
        "recipe diff recipe.yaml other.yaml",
    ),
    Subcommand(
        "recipe resolve",
        "print the effective recipe",
        "Print the effective recipe, as NeMo-RL's loader would read it.",
        f"{_READ}:resolve",
        (_FILE, OVERRIDES, JSON),
        "recipe resolve recipe.yaml --json distillation.max_num_steps=10",
    ),
    Subcommand(
        "recipe origin",
        "show where a value comes from and what follows it",
        "Show the file and line that a value comes from, and the keys that follow it.",
        f"{_READ}:origin",
        (_FILE, _KEY, OVERRIDES, JSON),
        "recipe origin recipe.yaml policy.model_name --json",
    ),
    Subcommand(
        "recipe lint",
        "list unknown keys, and settings that the teacher does not follow",
        "List unknown keys, and settings changed for the policy alone. Exit code 1 if there are any.",
        f"{_READ}:lint",
        (
            _FILE,
            OVERRIDES,
            Argument(
                "--checkout",
                "DIR",
                "NeMo-RL checkout, for its keys (default: $NEMO_RL_ROOT, else the one around FILE)",
            ),
            flag("--exit-zero", "exit with 0 even if there are findings"),
            JSON,
        ),
        "recipe lint recipe.yaml --json",
    ),
    Subcommand(
        "recipe find",
        "find keys by a part of key, value or comment",
        "Find keys of the effective recipe by any part of key, value or comment, and keys that NeMo-RL knows "
        "but that are not set. Exit code 1 if there are none.",
        f"{_KEYS}:find",
        (
            _FILE,
            Argument("text", "TEXT", "all its words must be found"),
            OVERRIDES,
            _CHECKOUT,
            Argument("--limit", "N", "matches to print", kind="count", default=20),
            JSON,
        ),
        "recipe find recipe.yaml lr",
    ),
    Subcommand(
        "recipe explain",
        "show what a key takes and what NeMo-RL says of it",
        "Show the type, the allowed values, the unit and the explanations of a key, with its values in stock "
        "recipes.",
        f"{_KEYS}:explain",
        (
            Argument(
                "file", "FILE", "recipe whose algorithm and checkout count, where none is given", repeat="?"
            ),
            _KEY,
            Argument(
                "--checkout",
                "DIR",
                "NeMo-RL checkout (default: $NEMO_RL_ROOT, else the one around the current directory)",
            ),
            Argument("--algorithm", "NAME", "algorithm that the recipe is for (default: distillation)"),
            JSON,
        ),
        "recipe explain policy.train_micro_batch_size",
    ),
    Subcommand(
        "recipe new",
        "write a new recipe as a copy of another one",
        "Write a new recipe as a copy of another one; parents are named from the new place.",
        f"{_NEW}:new",
        (
            Argument("file", "FILE", "new recipe"),
            Argument(
                "--from",
                "STOCK",
                "path, or name of a recipe of NeMo-RL or of this program",
                required=True,
                dest="stock",
            ),
            _CHECKOUT,
            flag("--dry-run", "print the text, write nothing"),
        ),
        "recipe new my-recipe.yaml --from qwen3-1.7b-from-4b --dry-run",
    ),
    Subcommand(
        "recipe derive",
        "write a new recipe that inherits from another one",
        "Write a new recipe that inherits from another one, and has only what overrides and fields change.",
        f"{_NEW}:derive",
        (
            Argument("parent", "PARENT", "path, or name of a recipe of NeMo-RL or of this program"),
            Argument("child", "CHILD", "new recipe, or a directory: named by models and size there"),
            OVERRIDES,
            SET_FIELD,
            SET_BOTH,
            _CHECKOUT,
            flag("--dry-run", "print the text, write nothing"),
        ),
        "recipe derive recipe.yaml child.yaml --set prompts=32 --dry-run",
    ),
    Subcommand(
        "recipe edit",
        "edit a recipe on the screen",
        "Open a recipe in the editor: effective tree, text, checks and memory as you type.",
        "tui.headless.open_editor:run",
        (_EDITED, OVERRIDES, HOST, NO_MOUSE),
        "recipe edit recipe.yaml",
    ),
    Subcommand(
        "recipe set",
        "set values, leaving the rest of the file as it is",
        "Set values. The rest of the file stays as it is, byte for byte.",
        f"{_EDIT}:set",
        (
            _EDITED,
            Argument(
                "pairs", "KEY VALUE or KEY=VALUE", f"KEY: {_KEY_FORMAT}; VALUE: read as YAML", repeat="+"
            ),
            flag("--both", "set KEY below policy and below teacher"),
            flag("--copy", "first write out sections that come from a merge or an alias"),
            DRY_RUN,
            ACCEPT_CHANGES,
        ),
        "recipe set recipe.yaml distillation.max_num_steps 200 --dry-run",
    ),
    Subcommand(
        "recipe insert",
        "add a key, or an item to a list",
        "Add a key, or an item to a list. Fails if the key exists.",
        f"{_EDIT}:insert",
        (
            _EDITED,
            Argument("parent", "PARENT", f"{_KEY_FORMAT}; . is the whole recipe"),
            Argument("key", "KEY", "new key, or number of the new list item"),
            Argument(
                "value",
                "VALUE",
                "read as YAML; without it, PARENT is the path of the new key and KEY its value",
                repeat="?",
            ),
            DRY_RUN,
            ACCEPT_CHANGES,
        ),
        "recipe insert recipe.yaml . notes '{owner: me}' --dry-run",
    ),
    Subcommand(
        "recipe unset",
        "remove a key",
        "Remove a key. Comments above it stay.",
        f"{_EDIT}:unset",
        (
            _EDITED,
            _KEY,
            flag("--with-comments", "also remove the comment lines above it"),
            DRY_RUN,
            ACCEPT_CHANGES,
        ),
        "recipe unset recipe.yaml distillation.max_num_steps --dry-run",
    ),
    Subcommand(
        "recipe minimise",
        "remove what the recipe would inherit anyway",
        "Remove the values that the recipe would inherit anyway.",
        f"{_EDIT}:minimise",
        (
            _EDITED,
            Argument("--base", "PARENT", "inherit from this recipe instead"),
            flag("--check", "change nothing; exit code 1 if something is redundant"),
            flag("--with-comments", "also remove the comment lines above the keys"),
            DRY_RUN,
            ACCEPT_CHANGES,
            JSON,
        ),
        "recipe minimise other.yaml --dry-run",
    ),
    Subcommand(
        "recipe comment",
        "print, set or (with an empty TEXT) remove the comment of a key",
        "Print, set or (with an empty TEXT) remove the comment of a key.",
        f"{_EDIT}:comment",
        (
            _EDITED,
            _KEY,
            Argument("text", "TEXT", "without the '#'", repeat="?"),
            flag("--above", "the lines above the key instead of the comment beside it"),
            DRY_RUN,
            ACCEPT_CHANGES,
            JSON,
        ),
        "recipe comment recipe.yaml policy.model_name --json",
    ),
    Subcommand(
        "recipe comment-out",
        "comment out a key, or take it back in",
        "Comment out a key with all below it, or take it back in.",
        f"{_EDIT}:comment_out",
        (
            _EDITED,
            _KEY,
            flag("--undo", "take the key that is commented out back in"),
            Argument("--line", "N", "with --undo: the line, where several have the key", "count"),
            DRY_RUN,
            ACCEPT_CHANGES,
        ),
        "recipe comment-out recipe.yaml distillation.max_num_steps --dry-run",
    ),
)
