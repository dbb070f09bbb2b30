"""Keys of the recipe editor."""

from __future__ import annotations

from tui.commands.command import Command, Scope

EDITOR_COMMANDS: tuple[Command, ...] = (
    Command(
        "editor.edit", ("enter",), "Edit the value",
        "Edit the value in place; where only some values are allowed, choose one, legal ones first. "
        "An inherited value is then set in this file. In the text, edit the text.",
        Scope.EDITOR, "edit_value", footer="edit",
    ),
    Command(
        "editor.find", ("slash",), "Find",
        "Find by any part of a key, a value or a comment, also keys that are not set.",
        Scope.EDITOR, "find", footer="find",
    ),
    Command(
        "editor.add", ("a",), "Add a key", "Add a key to this section, or an item to this list.",
        Scope.EDITOR, "add_key", footer="add",
    ),
    Command(
        "editor.remove", ("d", "delete"), "Remove the key",
        "Remove the key from this file; a parent's value is then inherited again.",
        Scope.EDITOR, "remove_key", footer="remove",
    ),
    Command(
        "editor.remark", ("c",), "Remark", "Write, change or remove the remark beside a key of this file.",
        Scope.EDITOR, "remark", footer="remark",
    ),
    Command(
        "editor.comment-out", ("number_sign",), "Comment out, or in",
        "Comment the key out with everything below it, or take it back in.",
        Scope.EDITOR, "comment_out",
    ),
    Command(
        "editor.both", ("B",), "Set both",
        "Give the student's value to the teacher too, or the other way round.",
        Scope.EDITOR, "set_both",
    ),
    Command(
        "editor.fix", ("f",), "Fix",
        "Apply the first fix of the finding on this key, or of the finding that is selected.",
        Scope.EDITOR, "fix", footer="fix",
    ),
    Command(
        "editor.fixes", ("F",), "Choose a fix", "Choose among all fixes of the finding.",
        Scope.EDITOR, "choose_fix",
    ),
    Command(
        "editor.fit", ("m",), "What would fit",
        "List the cheapest changes with which the recipe fits into the GPUs' memory, and apply one.",
        Scope.EDITOR, "what_would_fit", footer="fit",
    ),
    Command(
        "editor.place", ("p",), "Place",
        "Change the nodes, the GPUs of each, and their memory, which checks and memory are computed for.",
        Scope.EDITOR, "change_place", footer="place",
    ),
    Command(
        "editor.undo", ("u", "f3"), "Undo", "Take the last change back.", Scope.EDITOR, "undo", footer="undo",
    ),
    Command(
        "editor.redo", ("ctrl+r", "f4"), "Redo", "Make the change again that was taken back.",
        Scope.EDITOR, "redo",
    ),
    Command(
        "editor.diff", ("D",), "Diff", "Show what would be saved; from there, what differs from the parents.",
        Scope.EDITOR, "diff", footer="diff",
    ),
    Command(
        "editor.save", ("w", "f8", "ctrl+s"), "Save", "Write the file; asks if it was changed on disk.",
        Scope.EDITOR, "save", footer="save",
    ),
    Command(
        "editor.text", ("t", "f2"), "Edit the text", "Edit the file's text; F2 or esc returns to the tree.",
        Scope.EDITOR, "edit_text", footer="text",
    ),
    Command(
        "editor.external", ("E",), "Open $EDITOR",
        "Edit the text in $VISUAL or $EDITOR at this line, and take the result back as one change.",
        Scope.EDITOR, "external_editor", footer="$EDITOR",
    ),
    Command(
        "editor.origin", ("o",), "Open the origin",
        "Open the parent file that the value comes from, at its line.",
        Scope.EDITOR, "open_origin",
    ),
    Command(
        "editor.next-pane", ("tab",), "Next pane", "Go to the next pane: tree, text, checks.",
        Scope.EDITOR, "next_pane(1)", footer="pane",
    ),
    Command(
        "editor.previous-pane", ("shift+tab",), "Previous pane", "Go to the pane before.",
        Scope.EDITOR, "next_pane(-1)",
    ),
    Command("editor.tree", ("1",), "Tree", "Show the effective recipe.", Scope.EDITOR, "show_pane('tree')"),
    Command("editor.file", ("2",), "Text", "Show the file's text.", Scope.EDITOR, "show_pane('text')"),
    Command(
        "editor.checks", ("3",), "Checks", "Show the checks and the memory.",
        Scope.EDITOR, "show_pane('checks')",
    ),
    Command(
        "editor.finding", ("n",), "Next finding", "Go to the key of the next finding.",
        Scope.EDITOR, "next_finding(1)",
    ),
    Command(
        "editor.finding-before", ("N",), "Previous finding", "Go to the key of the finding before.",
        Scope.EDITOR, "next_finding(-1)",
    ),
    Command(
        "editor.back", ("b", "escape", "backspace"), "Back",
        "Leave the text mode, or close the editor; unsaved edits are kept and offered the next time.",
        Scope.EDITOR, "back", footer="back",
    ),
    Command(
        "text.leave", ("escape", "f2"), "Leave the text mode", "Return to the tree; the text stays as it is.",
        # Before the text, which would take escape to leave the field.
        Scope.TEXT_MODE, "leave_text", footer="leave text mode", priority=True,
    ),
    Command(
        "text.undo", ("f3", "ctrl+u"), "Undo", "Take the last change back.",
        Scope.TEXT_MODE, "undo", footer="undo",
    ),
    Command(
        "text.redo", ("f4", "ctrl+r"), "Redo", "Make the change again that was taken back.",
        Scope.TEXT_MODE, "redo", footer="redo",
    ),
    Command(
        "text.fix", ("f7",), "Fix", "Apply the first fix of the finding on the key of this line.",
        Scope.TEXT_MODE, "fix", footer="fix",
    ),
    Command(
        "text.diff", ("f5",), "Diff", "Show what would be saved.", Scope.TEXT_MODE, "diff", footer="diff",
    ),
    Command(
        "text.save", ("f8", "ctrl+s"), "Save", "Write the file; asks if it was changed on disk.",
        Scope.TEXT_MODE, "save", footer="save",
    ),
    Command("outline.up", ("up", "k"), "Up", "", Scope.OUTLINE, "cursor(-1)", palette=False),
    Command("outline.down", ("down", "j"), "Down", "", Scope.OUTLINE, "cursor(1)", palette=False),
    Command("outline.page-up", ("pageup",), "Page up", "", Scope.OUTLINE, "page(-1)", palette=False),
    Command(
        "outline.page-down", ("pagedown", "space"), "Page down", "", Scope.OUTLINE, "page(1)", palette=False,
    ),
    Command("outline.home", ("home", "g"), "First line", "", Scope.OUTLINE, "edge(-1)", palette=False),
    Command("outline.end", ("end", "G"), "Last line", "", Scope.OUTLINE, "edge(1)", palette=False),
    Command(
        "outline.fold", ("left", "h"), "Fold, or scroll left",
        "Fold the section; in a key, go to its section.",
        Scope.OUTLINE, "fold", palette=False,
    ),
    Command(
        "outline.unfold", ("right", "l"), "Unfold, or scroll right",
        "Unfold the section, or go to its first key.",
        Scope.OUTLINE, "unfold", palette=False,
    ),
    Command(
        "outline.fold-all", ("z",), "Fold all", "Fold all sections, or unfold them all.",
        Scope.OUTLINE, "fold_all", palette=False,
    ),
)  # fmt: skip
