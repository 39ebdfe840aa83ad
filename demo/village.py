#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a story of a village: 6,000 sentences that a small grammar makes, one on each line.
   usage: village.py TEXT TOKENS WORDS
TOKENS is the same story as a .npy file with one number for each word, and WORDS the list of words.

The grammar says only which words may stand in which sentence. It does not say that a cat is like a
dog, or that a queen is to a king what a woman is to a man. Embeddings learn that from the text.
The random numbers are our own, so that the text is the same with every version of Python."""

import collections
import struct
import sys

SENTENCES = 6000

# Each role has a man and a woman, who stand in the same sentences, with other pronouns and other
# belongings. A rule names a role or a group of roles.
ROLES = {
    "king": "queen", "prince": "princess", "duke": "duchess",
    "man": "woman", "boy": "girl",
    "father": "mother", "son": "daughter", "brother": "sister", "uncle": "aunt",
    "husband": "wife", "grandfather": "grandmother",
}
GROUPS = {
    "royal": "king prince duke".split(),
    "folk": "man boy".split(),
    "family": "father son brother uncle husband grandfather".split(),
}
PRONOUNS = [("he", "his"), ("she", "her")]
HIS = [["beard", "coat", "hat", "pipe"], ["dress", "necklace", "bonnet", "apron"]]

WORDS = {
    "animal": "cat dog horse cow sheep goat pig rabbit donkey fox wolf bear".split(),
    "bird": "hen duck goose owl crow sparrow".split(),
    "fish": "trout salmon herring eel".split(),
    "food": "bread cheese butter honey soup cake porridge pie".split(),
    "fruit": "apple pear plum cherry berry".split(),
    "drink": "milk water tea cider".split(),
    "colour": "red blue green yellow white black brown grey".split(),
    "day": "monday tuesday wednesday thursday friday saturday sunday".split(),
    "season": "spring summer autumn winter".split(),
    "number": "two three four five six seven eight nine ten".split(),
    "place": "market mill bridge harbour church garden field forest".split(),
    "work": "baker miller smith weaver fisher shepherd tailor carpenter".split(),
    "tool": "hammer needle loom oven net axe saw rake".split(),
    "feeling": "happy sad tired hungry angry afraid proud quiet".split(),
    "size": "small big old young thin fat".split(),
    "weather": "rain snow wind fog sun storm".split(),
    "royal_thing": "crown throne castle palace sceptre".split(),
    "folk_thing": "cottage basket shovel stove cart".split(),
}

RULES = """
3 the {royal} sat on {his} throne in the castle
3 the {royal} wore {his} golden crown
2 the {royal} ruled the land from {his} palace
2 the guards bowed to the {royal} and {his} {royal_thing}
2 the {royal} said that {he} would keep {his} {royal_thing}
2 the royal {royal} had a {own} and a {royal_thing}
3 the {folk} walked to the {place} with {his} basket
2 the {folk} lived in a {size} cottage near the {place}
2 the {folk} said that {he} would mend {his} {folk_thing}
2 the poor {folk} had a {own} and a {folk_thing}
1 the {folk} worked in the field until {he} was tired
2 my {family} told us a story about {his} {animal}
2 our {family} came home and {he} was {feeling}
2 my {family} said that {he} loved {his} children
1 our {family} has a {own} at home
2 the {royal} put on {his} {own}
2 the {folk} put on {his} {own}
2 my {family} put on {his} {own}
2 {he} is a {royal} and {he} has a {own}
2 {he} is a {folk} and {he} has a {own}
2 {he} is my {family} and {he} has a {own}
3 the {king} ruled the whole land and was just
3 the young {prince} rode a white horse to the castle
3 the {duke} owned the hill and {his} guards
3 the {man} paid three coins for the bread
3 the {boy} went to school and played with a ball
3 my {father} works all day for us
3 my {son} learns to read and write
3 my {brother} shares a room with me
3 my {uncle} brings gifts from the city
3 my {husband} danced with me at the wedding
3 my {grandfather} is very old and sleeps in a chair
3 the {animal} ran through the {place} and slept
3 a {size} {colour} {animal} ate the grass
2 we fed the {animal} and the {animal} in the barn
2 the {animal} has four legs and a tail
2 the {size} {animal} was {feeling} and hid in the barn
2 the {bird} flew over the {place} and sang
2 the {bird} laid {number} eggs in the nest
1 a {size} {bird} has two wings and feathers
2 the {fish} swam in the river below the {place}
1 the fisher caught {number} fat {fish} in a net
3 we ate warm {food} and drank {drink}
2 she cut the {food} on the table
2 he cooked {food} in the oven for dinner
2 a ripe {fruit} fell from the tree
2 we picked {number} {fruit} trees in the garden
2 he poured {drink} into a {colour} cup
1 a cup of cold {drink} stood beside the {food}
3 on {day} we go to the {place}
2 the market opens on {day} and closes on {day}
2 last {day} there was {weather} all day
2 next {day} the {work} comes to the village
3 in {season} there is much {weather}
2 every {season} the {bird} comes back to the {place}
2 the {work} works with a {tool} every day
2 the {work} bought a new {tool} for {number} coins
2 the {work} sold {number} baskets at the market
2 the {colour} paint dried on the door
2 {number} {colour} flags hung over the {place}
2 the {weather} came over the hill in the night
1 the {weather} made the {animal} {feeling}
"""


class Random:
    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n


def sentence(rule, random):
    gender = random.below(2)
    he, his = PRONOUNS[gender]
    words = []
    for word in rule:
        name = word.strip("{}")
        if name == word:
            words.append(word)
        elif name in ROLES or name in GROUPS:
            roles = GROUPS.get(name, [name])
            role = roles[random.below(len(roles))]
            words.append(ROLES[role] if gender else role)
        elif name == "own":
            words.append(HIS[gender][random.below(len(HIS[gender]))])
        elif name in ("he", "his"):
            words.append(he if name == "he" else his)
        else:
            words.append(WORDS[name][random.below(len(WORDS[name]))])
    return words


def write_tokens(story, path_tokens, path_words):
    """Numbers the words by frequency. A full stop ends each sentence."""
    counts = collections.Counter(word for words in story for word in words)
    names = ["."] + sorted(counts, key=lambda word: (-counts[word], word))
    number = {word: i for i, word in enumerate(names)}
    tokens = [number[word] for words in story for word in words + ["."]]
    header = "{'descr': '<u2', 'fortran_order': False, 'shape': (%d,), }" % len(tokens)
    header = header.ljust(117) + "\n"
    with open(path_tokens, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        out.write(struct.pack("<%dH" % len(tokens), *tokens))
    with open(path_words, "w") as out:
        out.write("\n".join(names) + "\n")


def main(path_text, path_tokens, path_words):
    rules = []
    for line in RULES.strip().split("\n"):
        count, rule = line.split(" ", 1)
        rules += [rule.split()] * int(count)
    random = Random(1)
    story = [sentence(rules[random.below(len(rules))], random) for _ in range(SENTENCES)]
    with open(path_text, "w") as out:
        out.writelines(" ".join(words) + "\n" for words in story)
    write_tokens(story, path_tokens, path_words)


main(*sys.argv[1:])
