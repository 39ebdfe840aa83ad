#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a story of a village: 6,000 sentences that a small grammar makes, one on each line.
   usage: village.py TEXT

The grammar says which words may stand in which sentence, and nothing else. But words of one list
below stand in the same sentences, and a role has its queen as it has its king. So that a cat is like
a dog, and that a queen is to a king what a woman is to a man, follows from the grammar nearly by
construction. A text that people wrote gives such a table only if it is large.
The random numbers are our own, so that the text is the same with every version of Python."""

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
    "feline": "cat kitten".split(),
    "pet": "cat kitten dog pet".split(),
    "animal": "cat kitten dog pet horse cow sheep goat pig rabbit donkey fox wolf bear".split(),
    "bird": "hen duck goose owl".split(),
    "seat": "mat rug".split(),
    "fast": "run sprint".split(),
    "slow": "walk wander".split(),
    "virtue": "justice peace truth honour".split(),
    "instrument": "xylophone flute drum fiddle".split(),
    "food": "bread cheese butter honey soup cake".split(),
    "fruit": "apple pear plum".split(),
    "drink": "milk water tea".split(),
    "colour": "red blue green yellow white black".split(),
    "day": "monday tuesday wednesday thursday friday saturday sunday".split(),
    "season": "spring summer autumn winter".split(),
    "number": "two three four five six seven 7 eight".split(),
    "place": "market mill bridge harbour church garden field forest".split(),
    "work": "baker miller smith shepherd tailor carpenter".split(),
    "tool": "hammer needle loom oven saw".split(),
    "feeling": "happy sad tired hungry angry quiet".split(),
    "size": "small big old young thin fat".split(),
    "weather": "rain snow wind sun".split(),
    "royal_thing": "crown throne castle palace sceptre".split(),
    "folk_thing": "cottage basket shovel stove".split(),
}

# What a child learns to read: each letter, small or large, is for the same words.
LETTERS = {
    "b": "bear bread", "c": "cow cheese", "d": "duck donkey", "k": "king kitten", "m": "man mat",
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
4 the {pet} sat on a {seat}
1 the {feline} drank {drink} and purred on the {seat}
1 the {pet} looked at the {weather}
2 the {pet} bit the {folk}
1 the {folk} bit the {pet}
4 my {pet} sleeps on a {seat} beside the bed
2 the {animal} will {fast} to the {place} and back
2 the {folk} can {fast} over the hill before dinner
2 we {fast} to school and {slow} home
2 old people {slow} by the river
2 the {royal} spoke of {virtue} in the land
2 there is no {virtue} without {virtue}
2 my {family} played the {instrument} at the wedding
2 the {folk} learns to play the {instrument}
5 {letter} is for {thing}
5 the child wrote {letter} for {thing} on the wall
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
    letter = sorted(LETTERS)[random.below(len(LETTERS))]
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
        elif name == "letter":
            words.append(letter.upper() if random.below(2) else letter)
        elif name == "thing":
            things = LETTERS[letter].split()
            words.append(things[random.below(len(things))])
        else:
            words.append(WORDS[name][random.below(len(WORDS[name]))])
    return words


def main(path):
    rules = []
    for line in RULES.strip().split("\n"):
        count, rule = line.split(" ", 1)
        rules += [rule.split()] * int(count)
    random = Random(1)
    story = [sentence(rules[random.below(len(rules))], random) for _ in range(SENTENCES)]
    with open(path, "w") as out:
        out.writelines(" ".join(words) + "\n" for words in story)


main(*sys.argv[1:])
