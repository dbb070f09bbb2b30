"""Every command, once. Parser, help, shell completion and the reference in docs/ are made from this table."""

from __future__ import annotations

from tui.cli.recipe_subcommands import RECIPE_COMMANDS
from tui.cli.spec import (
    DRY_RUN,
    HOST,
    JSON,
    NAMED_HOST,
    NO_MOUSE,
    OVERRIDES,
    SET_FIELD,
    TRUST,
    Argument,
    Group,
    Subcommand,
    flag,
)

TIME_FORMATS = "MM, HH:MM:SS, D-HH:MM:SS, 30m, 2h30"
ROLES = ("slurm", "head", "driver", "worker", "companion")
SHELLS = ("bash", "zsh", "tcsh")

_RECIPE = Argument("file", "FILE", "recipe")
_RUN = Argument("run", "RUN", "name of a run, or an unambiguous part of it")
_PROFILE = Argument("name", "NAME", "profile (default: all)", repeat="?")
_CHECKOUT = Argument(
    "--checkout", "DIR", "NeMo-RL checkout (default: $NEMO_RL_ROOT, else the one that contains FILE)"
)
_JOB_SIZE = (
    _RECIPE,
    OVERRIDES,
    Argument("--nodes", "N", "nodes of the job (default: the recipe's)", "count"),
    Argument("--gpus-per-node", "N", "GPUs of each node (default: the recipe's)", "count"),
    Argument("--gpu-memory", "GIB", "memory of one GPU in GiB (default: 40)", "amount"),
    Argument("--time", "T", f"time limit: {TIME_FORMATS}", "time"),
    _CHECKOUT,
    HOST,
    JSON,
)

GROUPS = (
    Group("recipe", "read, edit, compare and explain recipes", "FILE may be - (standard input)."),
    Group(
        "profile", "show, edit and check your profiles", "Profiles are options under one name, in site.toml."
    ),
    Group(
        "site", "show and share the facts of your site", "Your site.toml goes over what the program knows."
    ),
    Group("launcher", "export the batch script that starts Ray and the driver", ""),
)

COMMANDS: tuple[Subcommand, ...] = (
    Subcommand(
        "demo",
        "run a small distillation with stand-in models on this machine",
        "Read a recipe, start a real Ray cluster on this machine, distil a tiny model on it, and watch it. "
        "The stand-in models need no GPU; everything around them is what a real run uses.",
        "tui.headless.demo:run",
        (
            Argument("recipe", "RECIPE", "recipe (default: the demo's own)", repeat="?"),
            OVERRIDES,
            flag("--plain", "print events as lines of text"),
            flag("--json", "print events as JSON, one object a line"),
            flag("--yes", "start Ray here even if this is a shared login node"),
            NO_MOUSE,
        ),
        "demo --plain distillation.max_num_steps=2",
    ),
    Subcommand(
        "new",
        "configure and submit a run, step by step",
        "Open the wizard: cluster, models, parallelism, batches, data, nodes and time, review. "
        "`submit` does the same without a screen.",
        "tui.headless.new:run",
        (
            Argument("recipe", "RECIPE", "recipe file, or the name of a starting recipe", repeat="?"),
            OVERRIDES,
            SET_FIELD,
            HOST,
            NO_MOUSE,
        ),
        "new recipe.yaml policy.train_global_batch_size=64",
    ),
    Subcommand(
        "edit",
        "edit a recipe: effective tree, text, checks and memory as you type",
        "Open a recipe in the editor; without FILE, choose one. The same as `recipe edit`.",
        "tui.headless.open_editor:run",
        (Argument("file", "FILE", "recipe (default: choose one)", repeat="?"), OVERRIDES, HOST, NO_MOUSE),
        "edit recipe.yaml",
    ),
    Subcommand(
        "detect",
        "list the partitions, GPUs, limits and accounts of this Slurm cluster",
        "List the partitions of this Slurm cluster with their GPUs and limits, and your accounts.",
        "tui.headless.detect:run",
        (HOST, JSON, flag("--refresh", "ask Slurm again; answers are cached for four hours")),
        "detect --json",
    ),
    Subcommand(
        "check",
        "predict what would fail at start-up",
        "Predict what would fail at the start of a run. Exit code 1 if something would.",
        "tui.headless.check:run",
        (
            *_JOB_SIZE,
            Argument("--fix", "ID[:N]", "apply the first (or Nth) fix of a finding to FILE, show the diff"),
            flag("--dry-run", "with --fix: print the diff, change nothing"),
            flag("--all", "also list the checks that passed"),
            flag("--offline", "the nodes have no internet access: files missing here fail"),
        ),
        "check recipe.yaml --nodes 1 --gpus-per-node 4 policy.train_micro_batch_size=1",
    ),
    Subcommand(
        "doctor",
        "find out whether everything is ready for a run, and make it so",
        "Examine this login node, and with --on devel nodes in a short job: Slurm, storage, Python "
        "environments, models, libraries, GPUs, network. Nothing is changed without a question. Exit code 1 "
        "if something is not ready.",
        "tui.headless.doctor:run",
        (
            Argument("file", "FILE", "recipe (default: only what every run needs)", repeat="?"),
            OVERRIDES,
            Argument(
                "--on", "login|devel", "where (default: login)", choices=("login", "devel"), default="login"
            ),
            flag("--fix", "run the commands that help, each after a question", group="extent"),
            flag("--print", "print those commands as a shell script", group="extent"),
            Argument("--nodes", "N", "nodes of the job (default: the recipe's)", "count"),
            Argument("--time", "T", f"time limit of the job: {TIME_FORMATS}", "text"),
            Argument("--partition", "P", "partition of the job (default: Slurm's)"),
            Argument("--account", "A", "account of the job (default: yours)"),
            Argument("--profile", "NAME", "profile of your site.toml"),
            Argument("--modules", "NAMES", "modules that jobs load"),
            Argument("--container", "IMAGE", "image, where the job runs in NeMo-RL's container"),
            _CHECKOUT,
            flag("--screen", "show the verdicts on a screen", group="extent"),
            flag("--smoke", "for a smoke run: the site's partition for tests"),
            flag("--all", "also list what passed"),
            flag("--yes", "do not ask: submit the job, run the commands"),
            HOST,
            JSON,
        ),
        "doctor recipe.yaml --print",
    ),
    Subcommand(
        "memory",
        "estimate GPU and host memory",
        "Estimate the memory of every phase. Exit code 1 if one does not fit.",
        "tui.headless.memory:run",
        (*_JOB_SIZE, flag("--no-search", "do not search for settings that would fit")),
        "memory recipe.yaml --gpu-memory 40 --nodes 1 --gpus-per-node 4",
    ),
    Subcommand(
        "models",
        "show a model's architecture",
        "Show a model's architecture from its directory, the Hugging Face cache or a built-in table.",
        "tui.headless.models:run",
        (
            Argument("id", "ID", "Hugging Face id, or a directory with a config.json"),
            flag("--download", "first download config.json and tokenizer.json into the cache"),
            JSON,
        ),
        "models Qwen/Qwen3-8B",
    ),
    Subcommand(
        "scale",
        "adapt a recipe to another number of nodes",
        "Adapt a recipe to another size: nodes, the split of generation, parallel sizes, and batch sizes "
        "that divide. Prints the diff. The file stays as it is if the recipe would fail at the new size.",
        "tui.headless.scale:run",
        (
            Argument("file", "FILE", "recipe, edited in place"),
            Argument("--nodes", "N", "nodes of the job", "count", required=True),
            Argument("--gpus-per-node", "N", "GPUs of each node (default: the recipe's)", "count"),
            Argument(
                "--prompts-per-step", "N", "prompts per step (default: the recipe's, if it divides)", "count"
            ),
            Argument("--run", "RUN", "smoke run of this recipe: show its measured memory and step time"),
            _CHECKOUT,
            HOST,
            DRY_RUN,
            JSON,
        ),
        "scale recipe.yaml --nodes 2 --dry-run",
    ),
    Subcommand(
        "submit",
        "submit a run to Slurm",
        "Submit a run to Slurm, exactly once. Nodes and GPUs of the recipe are set to those of the job.",
        "tui.headless.submit:run",
        (),
        "submit recipe.yaml --nodes 2 --time 2:00:00 --rehearse",
        more_arguments="tui.cli.submit_arguments:arguments",
    ),
    Subcommand(
        "resume",
        "continue an ended run from its last checkpoint",
        "Submit one more job of a run: the recipe as it was submitted, from the last checkpoint.",
        "tui.headless.resume:run",
        (
            _RUN,
            Argument("--time", "T", f"another time limit: {TIME_FORMATS}", "time"),
            flag("--dry-run", "print what would be submitted, submit nothing"),
            TRUST,
            HOST,
            JSON,
        ),
        "resume RUN --time 4:00:00",
    ),
    Subcommand(
        "watch",
        "watch a run, a job or log files",
        "Watch a run of this program, any Slurm job, a directory of logs, or single log files.",
        "tui.headless.watch:run",
        (
            Argument(
                "target", "RUN|JOBID|DIR|FILE", "run, Slurm job, directory of logs, or log files", repeat="*"
            ),
            flag("--once", "print the current state and exit"),
            flag("--plain", "print events as lines of text"),
            flag("--json", "print JSON: one object with --once, else one object a line"),
            Argument("--log", "ROLE=FILE", "log file and who wrote it (repeatable)", repeat="*"),
            Argument("--role", "ROLE", f"who wrote the FILEs: {', '.join(ROLES)}", choices=ROLES),
            Argument(
                "--notify",
                "bell|terminal|COMMAND",
                "notify at start, failure and end; COMMAND gets DISTILL_TUI_… variables (repeatable)",
                repeat="*",
            ),
            HOST,
            NO_MOUSE,
        ),
        "watch --once --json logs/",
    ),
    Subcommand(
        "report",
        "report what happened to a run, without secrets",
        "Report what happened to a run: state, cause, evidence, settings. Keys and names are removed.",
        "tui.headless.report:run",
        (
            Argument("target", "RUN|DIR", "run, or directory of logs"),
            JSON,
            Argument("--tar", "FILE", "also write an archive with the last lines of every log"),
            Argument(
                "--lines", "N", "lines of each log in the archive (default: 2000)", "count", default=2000
            ),
            HOST,
        ),
        "report logs/ --json",
    ),
    Subcommand(
        "runs",
        "list the runs and their states",
        "List the runs, newest first, with their states; or tell their disk use, move them, remove the "
        "checkpoints of smoke runs and rehearsals.",
        "tui.headless.runs:run",
        (
            Argument(
                "runs", "RUN", "with an option: a run, or a part of its name (default: all)", repeat="*"
            ),
            flag(
                "--disk-use",
                "show the bytes on disk of each run and of all: logs, checkpoints",
                group="action",
            ),
            Argument(
                "--move", "DIR", "move the runs that have ended to a directory; a link stays", group="action"
            ),
            flag(
                "--remove-checkpoints",
                "remove the checkpoints of smoke runs and rehearsals that have ended",
                group="action",
            ),
            HOST,
            JSON,
        ),
        "runs --json",
    ),
    Subcommand(
        "fetch",
        "copy a run from another machine",
        "Copy a run's configuration, logs, metrics and report here. What is here already is not read again; "
        "a copy that was broken off goes on where it was. Keys are never copied.",
        "tui.headless.fetch:run",
        (
            _RUN,
            HOST._replace(required=True),
            Argument("--to", "DIR", "directory that gets the run's (default: this one)", default="."),
            flag("--checkpoints", "copy the checkpoints, too"),
            JSON,
        ),
        "fetch RUN --host far",
    ),
    Subcommand(
        "dashboard",
        "open a run's Ray dashboard here",
        "Open a port of this machine's loopback that leads to the Ray dashboard of a run, also through a "
        "login node, and print its address, until Ctrl+C. One browser can open it once; the key to Ray comes "
        "with it and is printed nowhere.",
        "tui.headless.dashboard:run",
        (
            _RUN,
            HOST,
            Argument("--port", "N", "local port (default: a free one)", kind="count"),
            JSON,
        ),
        "dashboard RUN --host far",
    ),
    Subcommand(
        "compare",
        "show runs beside each other",
        "Show runs beside each other: times of steps and phases, memory, milestones, the keys of their "
        "recipes that differ, and with --json their curves. Needs nothing but their files.",
        "tui.headless.compare:run",
        (Argument("runs", "RUN|DIR", "runs, or directories of logs", repeat="+"), JSON),
        "compare logs/ logs/ --json",
    ),
    Subcommand(
        "cancel",
        "stop a run",
        "Stop a run and wait until none of its processes is left on any node. Checkpoints are kept.",
        "tui.headless.cancel:run",
        (
            _RUN,
            flag(
                "--after-checkpoint",
                "wait until the next checkpoint is complete; ctrl-c stops waiting, not the run",
            ),
            TRUST,
            HOST,
        ),
        "cancel RUN --after-checkpoint",
    ),
    Subcommand(
        "settings",
        "show or change your settings",
        "Print the path of the settings file, or one setting, or set it. Comments in the file are kept. "
        "storage.runs is the directory of the runs; `keep` stands for the default one.",
        "tui.headless.settings:run",
        (
            Argument(
                "key",
                "KEY",
                "notify, storage.runs, storage.earlier_runs, monitor.layout or monitor.panes",
                repeat="?",
            ),
            Argument("value", "VALUE", "new value; several make a list", repeat="*"),
            NAMED_HOST,
            JSON,
        ),
        "settings storage.runs",
    ),
    Subcommand(
        "profile show",
        "print profiles",
        "Print your profiles, or one of them, as they stand in site.toml. Secrets are left out.",
        "tui.headless.profile:run_show",
        (_PROFILE, JSON),
        "profile show --json",
    ),
    Subcommand(
        "profile edit",
        "edit your site.toml",
        "Open site.toml in $EDITOR and check it after. A missing file or profile is made from a template.",
        "tui.headless.profile:run_edit",
        (_PROFILE,),
        "profile edit debug",
    ),
    Subcommand(
        "profile check",
        "check your site.toml",
        "Check site.toml for unknown keys and invalid values, and profiles against what Slurm offers.",
        "tui.headless.profile:run_check",
        (_PROFILE, JSON),
        "profile check --json",
    ),
    Subcommand(
        "site show",
        "print what is known of this site",
        "Print the facts of this machine's site with your site.toml's changes.",
        "tui.headless.site:run_show",
        (JSON,),
        "site show --json",
    ),
    Subcommand(
        "site import",
        "take over a site file",
        "Check a site file and make it your site.toml.",
        "tui.headless.site:run_import",
        (
            Argument("file", "FILE", "site file, as `site export` prints one"),
            flag("--replace", "replace your site.toml; the former one is kept beside it"),
        ),
        "site import site.toml",
    ),
    Subcommand(
        "site export",
        "print this site as a site file",
        "Print this site's facts and your profiles as a site file, without what looks like a secret.",
        "tui.headless.site:run_export",
        (),
        "site export",
    ),
    *RECIPE_COMMANDS,
    Subcommand(
        "launcher export",
        "write the scripts to a directory",
        "Write the launcher and the rehearsal to a directory, for use without this program.",
        "tui.headless.export:run",
        (Argument("directory", "DIR", "directory, created if missing"),),
        "launcher export scripts/",
    ),
    Subcommand(
        "completion",
        "print a shell completion script",
        "Print a completion script for a shell. It is static: completing starts no Python.",
        "tui.cli.completion:run",
        (Argument("shell", "SHELL", f"{', '.join(SHELLS)}", choices=SHELLS),),
        "completion bash",
    ),
)
