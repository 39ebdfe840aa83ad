# SPDX-License-Identifier: Apache-2.0
# The table of options, for programs.
embla help completion --json | sed -E 's/"version":"[^"]+"/"version":"..."/'
