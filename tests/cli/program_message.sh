# SPDX-License-Identifier: Apache-2.0
# A message is written at once: those of two processes on one pipe do not mix.
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
python3 - <<'PYTHON'
import socket, subprocess

ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)  # a datagram for each write
subprocess.run(["embla", "info", "a file\nthat does not exist " + "x" * 100], stderr=its)
print(ours.recv(65536).decode(), end="")
PYTHON
