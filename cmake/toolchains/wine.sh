#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a program for Windows under wine. Wine reads arguments in the encoding of the locale: so that
# tests may have any characters and still ask for ASCII output, another variable says C.
export WINEDEBUG="${WINEDEBUG--all}"
[ "${LC_ALL-}" != C ] || export LC_ALL=C.UTF-8 LANG=C
wine=$(command -v wine64 || command -v wine)
exec "$wine" "$@"
