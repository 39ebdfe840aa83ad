# SPDX-License-Identifier: Apache-2.0
# The presets and their sources.
embla cost --list
embla cost --list --json
