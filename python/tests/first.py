# SPDX-License-Identifier: Apache-2.0
"""The ten lines of python/README.md on the demo of the package, for a fresh environment."""
import os
import tempfile

import embla

demo = os.path.join(os.path.dirname(embla.__file__), "demo")
os.chdir(tempfile.mkdtemp())
t = embla.open(os.path.join(demo, "words.vec"))
print(t, t["cat"][:3])
print(t.near("cat", top=3))
print(t.analogy(plus=["king", "woman"], minus=["man"], top=1))
print(t.lookup([1, 2, 3]).shape)
print(t.save("words.gguf", dtype="q8_0").rows, "rows")
m = embla.Encoder(os.path.join(demo, "names"))
print(m.encode(["anna", "bella"]).shape, embla.Tokenizer(os.path.join(demo, "names")).encode("anna"))
print(embla.words(os.path.join(demo, "village.txt"), dim=16, epochs=1, clean="words", seed=1))
print(embla.train(os.path.join(demo, "names.txt"), "names", preset="microgpt", steps=50).model.generate(count=3))
