# SPDX-License-Identifier: Apache-2.0
# The documentation site that site.mjs opens; packaging/docs has built it.
[[ -e $here/../../build/site/html/index.html ]] || skip "the site is not built: packaging/docs"
cp -r "$here/../../build/site/html" site || exit 1
