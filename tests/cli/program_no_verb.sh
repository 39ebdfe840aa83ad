# SPDX-License-Identifier: Apache-2.0
# The usage goes to stderr, and nothing to stdout.
embla
