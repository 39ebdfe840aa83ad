# SPDX-License-Identifier: Apache-2.0
# Benchmarks by name; a wrong one is refused.
embla bench --list
try bench nothing
