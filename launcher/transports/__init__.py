"""Commands and files of a machine, behind one protocol (`base.Transport`); `local` is this machine.

In: paths and argument lists. Out: bytes, directory entries, processes; `TransportError` within a deadline
where the machine does not answer. Imports only `launcher.errors`, `launcher.text` and `launcher.signals`.
"""
