#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's trustworthiness of our layout, beside its PCA.

    layout_sklearn.py EMBLA

The first 3,000 rows of glove-50k where EMBLA_DATA has it, else rows around 40 directions. Of the 10
nearest points of a row, trustworthiness counts how far down the list of its nearest rows they are;
1 is the best. Ours is above 0.9, and PCA's is far below. Exits 77 where there is no scikit-learn.
"""
import base64
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True  # beside common.py

import common  # before numpy, because it chooses OpenBLAS's kernels

try:
    import numpy
    from sklearn.decomposition import PCA
    from sklearn.manifold import trustworthiness
except ImportError as error:
    common.skip("%s: nothing is compared" % error)

ROWS = 3000


def table():
    path = os.path.join(os.environ.get("EMBLA_DATA", ""), "glove-50k", "glove.6B.100d.50k.txt.xz")
    if os.path.exists(path):
        import lzma
        with lzma.open(path, "rt", encoding="utf-8") as file:
            lines = [next(file) for _ in range(ROWS)]
        return "glove-50k", numpy.array([line.rstrip().rsplit(" ", 100)[1:] for line in lines], dtype="f4")
    print("EMBLA_DATA is not set, or has no glove-50k: random directions instead")
    random = numpy.random.default_rng(5)
    middle = random.standard_normal((40, 50))
    return "directions", (middle[numpy.arange(ROWS) % 40] + 0.7 * random.standard_normal((ROWS, 50))).astype("f4")


def points(embla, path, layout):
    """Positions of a page."""
    page = path + layout + ".html"
    done = common.run(embla, "map", path, "-o", page, "--layout", layout, "--quiet")
    if done.returncode != 0 and b"install" in done.stderr:
        common.skip("no engine: %s" % done.stderr.decode().strip())
    if done.returncode != 0:
        sys.exit("embla map: exit %d: %s" % (done.returncode, done.stderr.decode()))
    with open(page, encoding="utf-8") as file:
        found = re.search(r'id="data-xy">([^<]*)<', file.read()).group(1)
    return numpy.frombuffer(base64.b64decode(found), dtype="<f4").reshape(-1, 2)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    name, array = table()
    unit = array / numpy.linalg.norm(array, axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table.npy")
        numpy.save(path, array)
        ours, plane = (points(sys.argv[1], path, layout) for layout in ("neighbours", "pca"))
    values = {kind: trustworthiness(unit, xy, n_neighbors=10)
              for kind, xy in (("layout", ours), ("plane", plane),
                               ("PCA", PCA(2).fit_transform(array)))}
    print("%s, %d rows: %s" % (name, len(array), ", ".join("%s %.4f" % v for v in values.items())))
    assert abs(values["plane"] - values["PCA"]) < 0.005, values
    assert values["layout"] > 0.9 and values["layout"] > values["PCA"] + 0.1, values


if __name__ == "__main__":
    main()
