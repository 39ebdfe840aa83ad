#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Passes frames between two network devices, late and not all of them: for kernels without netem.

usage: slow_link.py DEVICE DEVICE MILLISECONDS LOSS    (LOSS 0.01: one frame in a hundred is lost)
"""
import heapq
import random
import select
import socket
import sys
import time

delay, loss = float(sys.argv[3]) / 1e3, float(sys.argv[4])
random.seed(1)
ends = []
for device in sys.argv[1:3]:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    end.bind((device, 0))
    ends.append(end)
waiting = []  # (time, number, end, frame)
count = 0
while True:
    wait = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 1.0
    for end in select.select(ends, [], [], wait)[0]:
        frame, address = end.recvfrom(65536)
        if address[2] == socket.PACKET_OUTGOING or random.random() < loss:
            continue
        count += 1
        heapq.heappush(waiting, (time.monotonic() + delay, count, 1 - ends.index(end), frame))
    while waiting and waiting[0][0] <= time.monotonic():
        _, _, end, frame = heapq.heappop(waiting)
        try:
            ends[end].send(frame)
        except OSError as error:
            print(error, len(frame), file=sys.stderr)
