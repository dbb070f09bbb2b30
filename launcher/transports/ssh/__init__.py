"""Commands and files of another machine over one SSH connection (paramiko).

In: a host's name as `~/.ssh/config` has it, and who answers the server's questions. Out: the same protocol as
for this machine. One connection is shared by everything; it is made anew when it breaks. Imports paramiko at
first use, and of the launcher only `errors`, `text` and `transports.base`.
"""
