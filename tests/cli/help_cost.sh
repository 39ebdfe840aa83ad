# SPDX-License-Identifier: Apache-2.0
# Options with the defaults and choices that the parser uses.
embla help cost
