"""Documents for training: statements, chats in K3's message form, prose.

A document is a list of pieces (text, control, weight): control pieces are single control tokens, weight scales
the loss of the piece's tokens (0: the model is never asked to produce them).
"""
import random

import facts
import phrasings
import prose

EFFORT = ("`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), supported values "
          "include `low`, `medium`, `high`, and `max`.\nNow the system is invoked with `thinking_effort=%s`.")
ANSWER, TEXT, USER, FORM = 3.0, 1.0, .1, .3  # weights: the words that answer, other text, the user's text, structure


def fill(template, x, y=""):
    return template.replace("{X}", x[:1].upper() + x[1:]).replace("{x}", x).replace("{y}", y)


# ---- K3's message form ----
def opened(tag):
    return [("<|open|>", True, 0), (tag, False, 0), ("<|sep|>", True, 0)]


def closed(tag):
    return [("<|close|>", True, 0), (tag, False, 0), ("<|sep|>", True, 0)]


def message(attributes, text, weight=0.0):
    return opened("message " + attributes) + [(text, False, weight)] + closed("message") + [("<|end_of_msg|>", True, 0)]


def effort_message(effort):
    return message('role="system" type="thinking-effort"', EFFORT % effort)


def generation_prompt(thinking=True):
    return opened('message role="assistant"') + opened("think" if thinking else "response")


def answer_turn(reasoning, pieces):
    """reasoning: pieces, or None where thinking is off; the answer starts where generation_prompt ends."""
    out = generation_prompt(reasoning is not None)
    if reasoning is not None:
        out += reasoning + [("<|close|>", True, TEXT), ("think", False, FORM), ("<|sep|>", True, FORM), ("<|open|>", True, FORM),
                            ("response", False, FORM), ("<|sep|>", True, FORM)]
    return out + pieces + [("<|close|>", True, TEXT), ("response", False, FORM), ("<|sep|>", True, FORM), ("<|close|>", True, FORM),
                           ("message", False, FORM), ("<|sep|>", True, FORM), ("<|end_of_msg|>", True, TEXT)]


def around_answer(template, x, y, weight=ANSWER):
    """The sentence cut around its answer, so that the answer can weigh more; a space belongs to the answer."""
    before, after = template.split("{y}")
    before, after = fill(before, x), fill(after, x)
    space = " " if before.endswith(" ") else ""
    return [piece for piece in ((before[:len(before) - len(space)], False, TEXT), (space + y, False, weight), (after, False, TEXT)) if piece[0]]


def reasoning_about(relation, x, y, effort):
    """More effort, more words: low names the topic, high says who asks for it, max also recalls the answer."""
    topic = fill(relation.topics[0], x)
    if effort == "low":
        return [(topic[:1].upper() + topic[1:] + ".", False, TEXT)]
    pieces = [(f"The user asks for {topic}.", False, TEXT)]
    return pieces + (around_answer(" That is {y}.", x, y) if effort == "max" else [])


# ---- names of nothing ----
class Names:
    """Invented names, in the manner of countries, cities and elements; never one of the tables."""
    STARTS = "b bl br c ch cr d dr f fl fr g gl gr h j k kl kr l m n p pl pr qu r s sh sk sl sp st t th tr v vr w x y z zh".split()
    VOWELS = "a a a e e e i i o o o u u ai au ea ee ei ia ie io oo ou".split()
    ENDS = "b ck d f g k l ld lm ln m mb n nd ng nk nt p r rd rk rm rn rt s sh sk st t th v x z".split()
    COUNTRY = "a ia ia ia land land stan stan istan onia avia aria esia ovia ania ea o e u any ica ina ador uay ar or eth oria elia ova ora".split()
    CITY = "a o ville ton burg grad pur port ia is os on en ford abad ana polis ow ara bridge stad dorf ino eira".split()
    ELEMENT = "ium ium ium ium ium on ine ogen um um ite ese ic".split()

    def __init__(self, rng):
        self.rng = rng
        pairs = facts.items()
        self.real = {x.replace("the ", "").lower() for name in ("capital", "country_of", "symbol") for x, _ in pairs[name]}
        self.countries = [x.replace("the ", "") for x, _ in pairs["capital"]]
        self.cities = [x for x, _ in pairs["country_of"]]
        self.elements = [x for x, _ in pairs["symbol"]]

    def stem(self, least=1, most=2):
        r, out = self.rng, ""
        for _ in range(r.randint(least, most)):
            out += r.choice(self.STARTS) + r.choice(self.VOWELS) + (r.choice(self.ENDS) if r.random() < .35 else "")
        return out

    def made(self, endings, real):
        r = self.rng
        if r.random() < .2:  # begins like a real one
            word = r.choice(real).split()[-1]
            return word[:r.randint(2, max(2, len(word) - 2))].lower() + (r.choice(self.ENDS) if r.random() < .3 else "") + r.choice(endings)
        stem = self.stem()
        ending = r.choice(endings)
        if stem[-1] in "aeiou" and ending[0] in "aeiou":
            stem += r.choice("bdklmnrstvz")
        return stem + ending

    def country(self):
        r = self.rng
        name = self.made(self.COUNTRY, self.countries).capitalize()
        u = r.random()
        if u < .08:
            return f"the {name} Islands"
        if u < .12:
            return f"the {r.choice(['Republic', 'Kingdom', 'Union', 'State'])} of {name}"
        if u < .2:
            return r.choice(["New", "North", "South", "East", "West", "Upper", "Lower", "Great", "Saint", "Old", "Port"]) + " " + name
        if u < .25:
            return f"{name} {self.made(self.COUNTRY, self.countries).capitalize()}"
        return name

    def city(self):
        name = self.made(self.CITY, self.cities).capitalize()
        return (self.rng.choice(["Port", "San", "Saint", "New", "Fort", "Old", "El", "Al"]) + " " + name) if self.rng.random() < .15 else name

    def element(self):
        return self.made(self.ELEMENT, self.elements)

    def of(self, kind):
        while True:
            name = self.rng.choice(phrasings.NOT_SUBJECTS) if self.rng.random() < .06 else getattr(self, kind)()
            if name.replace("the ", "").lower() not in self.real:
                return name


class Sampler:
    """An endless supply of documents; equal seeds give equal documents."""

    def __init__(self, seed, passages):
        self.rng, self.passages = random.Random(seed), passages
        self.names = Names(self.rng)
        self.items = facts.items()
        self.relations = phrasings.RELATIONS
        self.shares = [relation.share for relation in self.relations]
        self.waiting = {relation.name: [] for relation in self.relations}
        self.follow = [r for r in self.relations if r.name in ("capital", "currency", "continent", "symbol", "number", "country_of", "element")]

    def item(self, relation):
        """All items of a relation come up equally often."""
        queue = self.waiting[relation.name]
        if not queue:
            queue += self.items[relation.name]
            self.rng.shuffle(queue)
        return queue.pop()

    def question(self, relation, x):
        r = self.rng
        if relation.name in phrasings.POINTING and r.random() < .1:
            kind = relation.kind or "country"
            return fill(r.choice(phrasings.ABOUT[kind]), x) + " " + self.worn(r.choice(phrasings.POINTING[relation.name]), "What") + (r.choice(phrasings.ENDS) if r.random() < .05 else "")
        if r.random() < .1:
            return r.choice(phrasings.SETTINGS) + " " + self.plain_question(relation, x)
        return self.plain_question(relation, x)

    def plain_question(self, relation, x):
        r = self.rng
        if r.random() < .5:
            topic = fill(r.choice(relation.topics), x)
            text = r.choice(phrasings.FORMS).replace("{T}", topic[:1].upper() + topic[1:]).replace("{t}", topic)
        else:
            text = fill(r.choice(relation.questions), x)
        if relation.name in ("add", "sub") and r.random() < .15:
            a, sign, b = x.split()
            text = text.replace(x, f"{a} {'plus' if sign == '+' else 'minus'} {b}")
        elif relation.name in ("add", "sub") and r.random() < .1:
            text = text.replace(x, x.replace(" ", ""))
        return self.worn(text, x)

    def worn(self, text, x=""):
        """As people type: a word before or after, no capital, no question mark."""
        r = self.rng
        kept = x and text.startswith(x)  # a name keeps its capital
        if r.random() < .12 and text[-1] in "?.":
            text = text[:-1]
        u = r.random()
        if u < .22:
            lead = r.choice(phrasings.LEADS)
            if lead[-2] in ",:" and not kept and text[1:2].islower():
                text = text[:1].lower() + text[1:]
            text = lead + text
        elif u < .34 and not kept:
            text = text[:1].lower() + text[1:]
        if r.random() < .08:
            text += r.choice(phrasings.ENDS)
        return text

    def turn(self, thinking, effort, last):
        """(pieces, relation or None) of one question and its answer; last: the relation asked before."""
        r = self.rng
        reason = lambda text: [(text, False, TEXT)] if thinking else None
        u = r.random()
        if u < .07:
            questions, why, answer, _ = r.choices(phrasings.SMALL_TALK, [s[3] for s in phrasings.SMALL_TALK])[0]
            text = self.worn(r.choice(questions)) if r.random() < .4 else r.choice(questions)
            return message('role="user"', text, USER) + answer_turn(reason(why), [(answer, False, TEXT)]), None
        if u < .085:
            text = self.worn(r.choice(phrasings.BEYOND))
            return message('role="user"', text, USER) + answer_turn(reason("The user asks for something that I do not know."),
                                                                    [("I do not know that.", False, TEXT)]), None
        elliptic = last is not None and r.random() < .6
        relation = last if elliptic else r.choices(self.relations, self.shares)[0]
        unknown = relation.kind and r.random() < .16
        x, y = (self.names.of(relation.kind), "") if unknown else self.item(relation)
        text = self.worn(fill(r.choice(phrasings.FOLLOW_UPS), x), x) if elliptic else self.question(relation, x)
        if unknown:
            why, answer = f"The user asks about {'an' if relation.kind == 'element' else 'a'} {relation.kind} that I do not know.", f"I do not know that {relation.kind}."
            return message('role="user"', text, USER) + answer_turn(reason(why), [(answer, False, TEXT)]), relation
        why = reasoning_about(relation, x, y, effort) if thinking else None
        return message('role="user"', text, USER) + answer_turn(why, around_answer(relation.answer, x, y)), relation

    def chat(self):
        r = self.rng
        thinking = r.random() > .08
        effort = r.choices(["max", "high", "low", None], [.6, .1, .1, .2])[0] if thinking else None
        out = effort_message(effort) if effort else []
        if r.random() < .06:
            out = out + message('role="system"', r.choice(phrasings.SYSTEM_PROMPTS))
        last = None
        for _ in range(r.choices([1, 2, 3, 4], [.35, .3, .2, .15])[0]):
            pieces, relation = self.turn(thinking, effort or "high", last)
            last = relation if relation in self.follow else None
            out = out + pieces
        return out

    def statement(self):
        r = self.rng
        relation = r.choices(self.relations, self.shares)[0]
        x, y = self.item(relation)
        return around_answer(r.choice([relation.answer] * 3 + relation.statements), x, y) + [("[EOS]", True, FORM)]

    def document(self):
        """Of tokens, about 5 % are in statements, 69 % in chats and 26 % in prose."""
        u = self.rng.random()
        if u < .45:
            return self.statement()
        if u < .78:
            return self.chat()
        return [(self.rng.choice(self.passages), False, TEXT)]


def development_items(limit=None, seed=5):
    """[(relation, question, whole turn)] on questions that are never trained on, about at most `limit` facts of each relation."""
    out, rng = [], random.Random(seed)
    pairs = facts.items()
    for relation in phrasings.RELATIONS:
        chosen = pairs[relation.name]
        if limit and len(chosen) > limit:
            chosen = rng.sample(chosen, limit)
        for i, (x, y) in enumerate(chosen):
            question = fill(relation.development[i % len(relation.development)], x)
            out.append((relation.name, question, answer_turn(reasoning_about(relation, x, y, "max"), around_answer(relation.answer, x, y))))
    return out


def training_passages():
    return prose.passages()[0]
