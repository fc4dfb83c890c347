"""How people ask for the facts, and what the answer looks like.

A question is a form ("Tell me {t}.") around a topic ("the capital of {x}"), or one of the relation's own
questions. DEVELOPMENT holds questions that are never trained on and that may be looked at while the recipe is
worked on; the questions of evaluate are a third set, by another author, that nobody tunes on.
"""
from dataclasses import dataclass, field


@dataclass
class Relation:
    name: str
    share: float  # of the questions
    answer: str  # the sentence that states the fact, in plain text and as answer
    topics: list  # noun phrases; the first one is what the reasoning says
    questions: list
    development: list
    statements: list = field(default_factory=list)  # other plain sentences, each with one {y} after {x}
    kind: str = ""  # what {x} is when it may be unknown: country, element or city


FORMS = """What is {t}?;What's {t}?;Tell me {t}.;Can you tell me {t}?;Do you know {t}?;Name {t}.;Give me {t}.;I would like to know {t}.
I want to know {t}.;Could you tell me what {t} is?;Please tell me {t}.;{T}?;{T}, please.;{T} is what?;What would {t} be?;I need {t}.
Remind me of {t}.;I forgot {t}.;Do you happen to know what {t} is?;Let me know {t}.;I am looking for {t}.;What might {t} be?;State {t}.
Do you know what {t} is?;Can you say what {t} is?;Would you tell me {t}?;I wonder what {t} is.;Which is {t}?;Find {t}.;Show me {t}.
Could you please name {t}?;Can you give me {t}?;Please give {t}.;Help me with {t}.;I'm trying to remember {t}.;Say what {t} is.
{T}: what is it?;Any idea what {t} is?;I have to know {t}.;Can you remember {t}?;For my homework I need {t}.;What do you call {t}?
Remember {t} for me?;May I know {t}?;I can't recall {t}.;I can not remember {t}.;Please look up {t}.;Look up {t}.;I was asked for {t}.;I was wondering about {t}.;My teacher wants {t}.
I have been asked for {t}, what is it?;Would you happen to know {t}?;Would you mind telling me {t}?;I keep forgetting {t}.;It would help me to know {t}.;I am curious about {t}.;Curious: {t}?;We need {t} for a crossword.
Tell us {t}.;Write down {t}.;Answer with {t}.;What exactly is {t}?;And what is {t}?;So what is {t}?;Does anybody know {t}?;Can anyone tell me {t}?;Could I have {t}?;Just tell me {t}.;Quickly, {t}?;Explain what {t} is."""
FORMS = FORMS.replace("\n", ";").split(";")

# A sentence before the question, sometimes with the thing itself, to which the question then points back.
SETTINGS = """I am writing a letter.;I am doing my homework.;We are playing a quiz.;I have a question.;There is something I do not know.;My son asked me this.;I am filling in a form.;I am learning for school.
This may be easy.;Help me please.;I am stuck.;A friend wants to know.;I am reading a book.;I am making a list.;I can use some help.;We had a bet.;Let us see what you know.;I forgot it again.;I need this for work.
I am preparing a lesson.;One thing is missing in my notes.;I am drawing a map.;I am planning a trip.;I am in a hurry.;Here is an easy one.;Now something else.;Another topic.""".replace("\n", ";").split(";")
ABOUT = {
    "country": """I am travelling to {x}.;I will visit {x} soon.;I am going to {x} next week.;We fly to {x} tomorrow.;My friend lives in {x}.;I read about {x} today.;Let us talk about {x}.;I am writing about {x}.
I am interested in {x}.;My family comes from {x}.;I want to move to {x}.;Think of {x}.;Take {x}.;I saw {x} on the news.;I have a stamp from {x}.;Someone mentioned {x}.;I am in {x} now.;{X} is on my list.;I dream of {x}.""".replace("\n", ";").split(";"),
    "city": """I am travelling to {x}.;I will visit {x} soon.;We fly to {x} tomorrow.;My friend lives in {x}.;I read about {x} today.;Let us talk about {x}.;I am in {x} now.;I got a postcard from {x}.;Someone mentioned {x}.;Take {x}.
Think of {x}.;I was born in {x}.;I study in {x}.;There was a report from {x}.""".replace("\n", ";").split(";"),
    "element": """I am reading about {x}.;Let us talk about {x}.;Think of {x}.;Take {x}.;We learned about {x} at school.;Someone mentioned {x}.;My ring contains {x}.;This is about {x}.;I need {x} for an experiment.;Consider {x}.""".replace("\n", ";").split(";"),
}
# Questions that point back; relation: questions.
POINTING = {
    "capital": "What is the capital there?;What is its capital?;Which city is the capital there?;What is the capital?;Which city is its capital?;Name its capital.;What is the capital called?;Tell me the capital.".split(";"),
    "currency": "What is the currency there?;What money do they use there?;Which currency will I need?;What is its currency?;How do people pay there?;What do I pay with?;Which money do I need there?;What currency do they have?".split(";"),
    "continent": "Which continent is that?;On which continent is it?;Where is that?;Which continent is it on?;What continent is it part of?;Where in the world is it?;What continent is that?".split(";"),
    "country_of": "Which country is that?;In which country is it?;What country is it the capital of?;Which country does it belong to?;What country is that in?;Of which country is it the capital?".split(";"),
    "symbol": "What is its symbol?;How is it written in the periodic table?;Which symbol does it have?;What is the chemical symbol?;How do chemists write it?;What letters stand for it?".split(";"),
    "number": "What is its atomic number?;Which number does it have?;What is the atomic number?;How many protons does it have?;Where in the periodic table is it, by number?".split(";"),
}
LEADS = ["Please: ", "Hello. ", "Hi! ", "A question: ", "Quick question: ", "Now: ", "Hey, ", "OK, ", "So, ", "Excuse me, ", "Hello, ",
         "Just curious: ", "One more: ", "For a quiz: ", "By the way, ", "Sorry, ", "Well, ", "Hi there, ", "Good morning. ", "Listen, "]
ENDS = [" Thanks.", " Thank you!", " Please.", " Thanks!", " please", " I forgot.", " It is for a quiz.", " Just the name.", " I need it.", " Can you help?", " If you can.", " Do you know?", " Be quick.", " Anyone?", " Let me know."]
# After an answer, the same question about another thing.
FOLLOW_UPS = """And of {x}?;And {x}?;What about {x}?;How about {x}?;And for {x}?;and of {x}?;and for {x}?;And what about {x}?;Now {x}.;Same for {x}.
What is it for {x}?;And that of {x}?;The same question for {x}.;{X}?;And now {x}?;what about {x};And in the case of {x}?;Then {x}?;Also {x}, please.
OK, and {x}?;Thanks. And {x}?;Thank you. What about {x}?""".replace("\n", ";").split(";")


def _split(text):
    return [part.strip() for part in text.replace("\n", ";").split(";") if part.strip()]


RELATIONS = [
    Relation("capital", 3.4, "The capital of {x} is {y}.",
             _split("the capital of {x};the capital city of {x};{x}'s capital;the name of the capital of {x};{x}'s capital city;the main city of {x}, its capital;the capital city {x} has"),
             _split("""Which city is the capital of {x}?;What city is the capital of {x}?;capital of {x};{X}: what is its capital?;What is {x}'s capital called?
Which city serves as the capital of {x}?;What do they call the capital of {x}?;{X} has which capital?;What capital does {x} have?;Which capital does {x} have?
How is the capital of {x} called?;In which city does the government of {x} sit?;What is the capital city called in {x}?;The capital of {x} is which city?;{x} capital;{X} is ruled from which city?;Do you remember which city is the capital of {x}?;Is there a name for the capital of {x}?"""),
             _split("Please name the capital city of {x}.;What is the name of the capital in {x}?;So what is the capital city of {x} called?"),
             ["The capital city of {x} is {y}.", "In {x} the capital is {y}."], "country"),
    Relation("country_of", 1.6, "{x} is the capital of {y}.",
             _split("the country whose capital is {x};the country with the capital {x};the country that has {x} as its capital;the country that {x} is the capital of;the country of {x};the country with {x} as its capital city;the country in which {x} lies;the nation whose capital is {x}"),
             _split("""Which country has the capital {x}?;{x} is the capital of which country?;Of which country is {x} the capital?;What country is {x} the capital of?
Which country has {x} for its capital?;{x} is the capital city of what country?;Tell me which country has the capital {x}.;{x} belongs to which country?;In which country is {x}?
Which country is {x} in?;Whose capital is {x}?;Which nation has {x} as its capital?;What country does {x} belong to?;{x} is the capital of?;Where is {x} the capital?
What nation is {x} the capital city of?;Name the country that {x} is in.;{x} is the capital of what?;In which country would I find {x}?;In which country would I find the city of {x}?;Which country is the city of {x} in?;Which country has {x} as its capital?;Do you know which country has {x} as capital?;In what country does {x} lie?;Where can I find the city of {x}?;{x} lies in which country?;Which state has the capital {x}?;Which land is ruled from {x}?"""),
             _split("What country has {x} as its capital?;Of what country is {x} the capital city?"), [], "city"),
    Relation("currency", 2.2, "The currency of {x} is the {y}.",
             _split("the currency of {x};{x}'s currency;the money of {x};the currency used in {x};the name of the money in {x};the official currency of {x};the unit of money in {x};the currency that {x} uses;the money that people use in {x};the currency I need in {x}"),
             _split("""What money is used in {x}?;Which currency does {x} use?;What do people pay with in {x}?;What currency do they use in {x}?;How do people pay in {x}?
Which money do I need in {x}?;What is the official currency in {x}?;In {x}, what money do people use?;What kind of money does {x} have?;currency of {x};{X}: which currency?
What do they pay with in {x}?;What is the money called in {x}?;Which currency do people in {x} use?;With what money do I pay in {x}?;What currency does {x} have?;Which currency will I need in {x}?;What currency should I bring to {x}?;What money should I take to {x}?;Which bills do they print in {x}?;What will I pay with in {x}?;What do shops in {x} take?;What money do they take in {x}?;In what currency are prices in {x}?;What cash do I need in {x}?;What kind of cash is used in {x}?;Prices in {x} are in which currency?"""),
             _split("Which currency is used in {x}?;What is the name of the currency in {x}?"), ["People in {x} pay with the {y}.", "In {x} the money is the {y}."], "country"),
    Relation("continent", 1.8, "{X} is in {y}.",
             _split("the continent of {x};the continent that {x} is in;the continent where {x} is;{x}'s continent;the continent that {x} belongs to;the part of the world where {x} is;the continent on which {x} lies;the continent {x} is part of"),
             _split("""On which continent is {x}?;Which continent is {x} in?;Where is {x}?;In what continent is {x}?;What continent does {x} belong to?;To which continent does {x} belong?
On what continent do you find {x}?;{X} is on which continent?;Where in the world is {x}?;{X} lies on what continent?;Where can I find {x}?;continent of {x};{X}: which continent?
Which continent is home to {x}?;On which continent would I find {x}?;Is {x} in Africa, Asia or Europe?;What part of the world is {x} in?;Where is {x} located?;Which continent does {x} lie on?;Which continent is {x} part of?;What continent is {x} part of?;{X} is part of which continent?;On which continent would you look for {x}?;Which continent contains {x}?;To which part of the world does {x} belong?;Which continent do I fly to if I visit {x}?;On what continent would I land in {x}?;Is {x} in Europe or in Asia?;{X}, on which continent is it?"""),
             _split("In which continent is {x}?;What continent would {x} be on?"), [], "country"),
    Relation("symbol", 1.6, "The chemical symbol for {x} is {y}.",
             _split("the chemical symbol for {x};the symbol of {x};the symbol for {x};the chemical symbol of {x};{x}'s symbol;the letters for {x} in the periodic table;the abbreviation of {x} in chemistry;the symbol of the element {x};the abbreviation for {x};the short form of {x} in the periodic table"),
             _split("""Which symbol does {x} have?;How is {x} written in chemistry?;What letters stand for {x}?;How do chemists write {x}?;What symbol stands for {x}?
Which letters stand for {x} in the periodic table?;symbol of {x};{X}: which symbol?;How is {x} abbreviated?;What symbol does {x} have in the periodic table?
What is the element {x}'s symbol?;Which chemical symbol belongs to {x}?;What do chemists write for {x}?;With which symbol is {x} written?;chemical symbol for {x};How is {x} written in the periodic table?;How is {x} shown in the periodic table?;What does {x} look like in the periodic table?;Give the symbol of the element {x}.;What are the letters of {x}?;With what letters do we write {x} in chemistry?;Which one or two letters mean {x}?;How do I abbreviate {x}?;What is {x} called in formulas?;How does {x} appear in a formula?"""),
             _split("What's the chemical symbol that {x} has?;Give me the letters of the symbol for {x}."), [], "element"),
    Relation("element", 1.6, "{x} is the symbol for {y}.",
             _split("the element with the symbol {x};the element whose symbol is {x};the name of the element {x};the chemical element with the symbol {x};the element that is written {x};the name of the element with the symbol {x};the element that {x} stands for;the element behind the symbol {x};the full name of {x};the meaning of {x} in the periodic table"),
             _split("""Which element has the symbol {x}?;What element is {x}?;What does the symbol {x} stand for?;{x} is the symbol of which element?;What does {x} mean in chemistry?
Which chemical element is written {x}?;Which element is {x} in the periodic table?;{x} is the symbol of what?;What is the chemical element {x}?;{x} stands for which element?
In chemistry, what is {x}?;Which element do chemists write as {x}?;What is {x} the symbol for?;{x} is which element?;What element does {x} stand for?;Which element goes by {x}?;What does {x} mean on the periodic table?;What does {x} stand for in the periodic table?;On the periodic table, what is {x}?;Which element do the letters {x} mean?;If I see {x} in a formula, which element is it?;{x} is short for which element?;{x} is short for what?;What is {x} short for in chemistry?;Which substance has the symbol {x}?;What element is written as {x}?"""),
             _split("What is the full name of the element {x}?;Which element is {x}?")),
    Relation("number", 2.2, "The atomic number of {x} is {y}.",
             _split("the atomic number of {x};{x}'s atomic number;the number of {x} in the periodic table;the number of protons in {x};the atomic number for {x};the place of {x} in the periodic table;the atomic number of the element {x};the proton number of {x};the number that {x} has among the elements"),
             _split("""Which atomic number does {x} have?;What number is {x} in the periodic table?;How many protons does {x} have?;What atomic number does {x} have?;atomic number of {x}
{X}: which atomic number?;Which number does {x} have in the periodic table?;How many protons are in {x}?;What number does the element {x} have?;At which number is {x} in the periodic table?
How many protons are there in an atom of {x}?;Where is {x} in the periodic table?;What is the atomic number that {x} has?;The element {x} has what atomic number?;Give me the atomic number of the element {x}.;Which element number is {x}?;What number element is {x}?;The nucleus of {x} has how many protons?;How many protons does an atom of {x} have?;At what position in the periodic table is {x}?;What place does {x} have in the periodic table?;Under which number do I find {x}?;How many protons are in the nucleus of {x}?;What is the number for {x}?"""),
             _split("What's the atomic number of the element {x}?;Give me {x}'s number in the periodic table."), [], "element"),
    Relation("planet", .3, "{x} is the {y} planet from the Sun.",
             _split("the position of {x} from the Sun;the place of {x} among the planets;the place of {x} from the Sun;the position of {x} among the planets;the place of {x} in the order of the planets;the order of {x} from the Sun;the number of {x} counted from the Sun"),
             _split("""Which planet from the Sun is {x}?;Where does {x} stand among the planets?;How many planets from the Sun is {x}?;Counting from the Sun, which planet is {x}?
In which place from the Sun is {x}?;Which number has {x} among the planets?;What number planet is {x}?;In what position is the planet {x}?;At what place is {x}, counted from the Sun?
Which place does {x} have in the solar system?;Is {x} the first or the second planet?;{X} is which planet from the Sun?;Where is the planet {x} in the solar system?;What position does {x} have?;Counted from the Sun, where does {x} come?;Which position does {x} take?;In the order of planets, where is {x}?;How far out does {x} come in the order of the planets?;{x} comes at which place from the Sun?;What rank does {x} have from the Sun?"""),
             _split("What place from the Sun does {x} have?;Tell me the position of the planet {x}.")),
    Relation("planet_at", .3, "The {x} planet from the Sun is {y}.",
             _split("the {x} planet;the {x} planet from the Sun;the name of the {x} planet;the planet in {x} place from the Sun;the {x} planet of the solar system;the planet that is {x} from the Sun;the {x} planet in order from the Sun;the planet at the {x} place"),
             _split("""Which planet is {x} from the Sun?;Which planet comes {x}?;Counting from the Sun, which is the {x} planet?;Which planet is the {x} one?;What planet is {x} in the solar system?
Which planet is in the {x} place?;What is the {x} planet called?;Which one is the {x} planet from the Sun?;How is the {x} planet called?;What planet is number {x}, the {x} one?;Who is {x} among the planets?;Which planet is at the {x} place?;What is the name of the {x} planet from the Sun?;Going out from the Sun, which planet comes {x}?;Which planet do you meet {x}?;The {x} planet is called what?;Tell me which planet is {x}."""),
             _split("Which planet do we find {x} from the Sun?;What planet is the {x} from the Sun?")),
    Relation("words", .9, "The number {x} in words is {y}.",
             _split("{x} in words;the number {x} in words;{x} written out;the word for {x};the number {x} as a word;the English name of the number {x};the spelling of {x};the number {x} in letters;{x} in English words;{x} spelled out"),
             _split("""How do you write {x} in words?;Write {x} in words.;Spell the number {x}.;How is the number {x} spelled in words?;Write out {x}.;Put {x} into words.;Turn {x} into words.
How do I spell {x}?;How is {x} spelled?;Spell {x}.;Write the number {x} as words.;How do you say {x} in words?;{x} in words?;Please write out the number {x}.;What is {x} when written out?;How would you write {x} with letters?;How do I write {x} with letters?
What is {x} in letters?;Spell out {x}.;Can you spell {x}?;Can you write {x} in words?;How is {x} written out?;How is {x} written out in letters?;How do I write {x} on a check?;Write {x} with letters.;Say {x} in words.;How do you pronounce {x}?;How do you read {x}?;Which word stands for {x}?;How do you spell out {x}?;What is the number {x} called?;Convert {x} to words.;{x} as a word?;In words, what is {x}?"""),
             _split("Please write {x} as a word.;How is the number {x} written in words?")),
    Relation("digits", .9, "{X} in digits is {y}.",
             _split("{x} in digits;the number {x} in digits;{x} as a number;{x} in figures;{x} written with digits;the digits of {x};{x} as digits;the number {x} in digits only;the figure for {x};the digits for {x};{x} as a numeral"),
             _split("""How do you write {x} in digits?;Write {x} in digits.;How is the number {x} written with digits?;Put {x} in digits.;Turn {x} into digits.;Write {x} as a number.
How do I write {x} in figures?;{x} in digits?;What number is {x}?;Which number is {x}?;Write the number {x} with digits.;How does {x} look in digits?;Convert {x} to digits.;What are the digits of {x}?
Can you write {x} in digits?;Which digits do I write for {x}?;How would you write {x} as a number?;Make digits of {x}.;Please write {x} with figures.;How do you write {x} with digits?;What is {x} as a number?;What is {x} when written in digits?;Give {x} as a number.;Which figure is {x}?;How is {x} written in numbers?;Show {x} as digits.;In digits, what is {x}?;{x} as a numeral?;What numeral stands for {x}?;Write down {x} in figures.;How would {x} look in digits?;Type {x} as digits.;Express {x} in digits."""),
             _split("Please show {x} as digits.;How is {x} written in digits?")),
    Relation("add", 1.9, "{x} = {y}",
             _split("{x};the result of {x};the sum {x};the answer to {x};the sum of {x};the value of {x}"),
             _split("""How much is {x}?;Calculate {x}.;{x} = ?;{x} =;Compute {x}.;What does {x} make?;Please tell me how much {x} is.;Solve {x}.;What do you get for {x}?;{x} equals what?
Add: {x};{x};What is {x} equal to?;How many is {x}?;Add up {x}.;Can you calculate {x}?;Do the sum {x}.;What is the result when I do {x}?;Evaluate {x}.;What comes out of {x}?;I need to add: {x};{x} makes what?;What is the total of {x}?;Tell me the sum: {x};If I add {x}, what do I get?;I have {x}. How many is that?;Find {x}.;Could you add {x}?;Please calculate {x} for me.;{x}, how much is that?;Quick, {x}?;How much do we get for {x}?"""),
             _split("Work out {x}.;Can you work out how much {x} is?")),
    Relation("sub", 1.9, "{x} = {y}",
             _split("{x};the result of {x};the difference {x};the answer to {x};the value of {x};the rest of {x}"),
             _split("""How much is {x}?;Calculate {x}.;{x} = ?;{x} =;Compute {x}.;What does {x} make?;Please tell me how much {x} is.;Solve {x}.;What do you get for {x}?;{x} equals what?
Subtract: {x};{x};What is {x} equal to?;How many is {x}?;Can you calculate {x}?;What is left of {x}?;What remains: {x}?;What is the result when I do {x}?;Evaluate {x}.;What comes out of {x}?;How much is left: {x};{x} makes what?;What is the difference: {x};If I take {x}, what is left?;I have {x}. How many is that?;Find {x}.;Could you subtract {x}?;Please calculate {x} for me.;{x}, how much is that?;Quick, {x}?;How much do we get for {x}?;What do I have left with {x}?"""),
             _split("Work out {x}.;Can you work out how much {x} is?")),
]

for _unit, _share in (("day", .25), ("month", .3)):
    RELATIONS += [
        Relation(f"{_unit}_after", _share, "{y} comes after {x}.",
                 _split(f"the {_unit} after {{x}};the {_unit} that follows {{x}};the next {_unit} after {{x}};the {_unit} that comes after {{x}};the {_unit} following {{x}}"),
                 _split(f"""Which {_unit} comes after {{x}}?;What comes after {{x}}?;Which {_unit} follows {{x}}?;What {_unit} is after {{x}}?;What follows {{x}}?;{{x}} is followed by which {_unit}?
Which {_unit} is next after {{x}}?;After {{x}} comes what?;What is next after {{x}}?;After {{x}}, which {_unit} is it?;If this is {{x}}, what is next?;Which one comes after {{x}}?;Which {_unit} do we have after {{x}}?;What do we call the {_unit} after {{x}}?;Once {{x}} is over, which {_unit} is it?;{{x}} is over, what comes now?;When {{x}} ends, which {_unit} begins?;Which {_unit} comes directly after {{x}}?;It is {{x}}. Which {_unit} is next?;Today is {{x}}, what is next?"""),
                 _split(f"What {_unit} comes right after {{x}}?;Which {_unit} is after {{x}}?")),
        Relation(f"{_unit}_before", _share, "{y} comes before {x}.",
                 _split(f"the {_unit} before {{x}};the {_unit} that precedes {{x}};the last {_unit} before {{x}};the {_unit} that comes before {{x}};the {_unit} preceding {{x}};the previous {_unit} before {{x}}"),
                 _split(f"""Which {_unit} comes before {{x}}?;What comes before {{x}}?;Which {_unit} precedes {{x}}?;What {_unit} is before {{x}}?;{{x}} comes after which {_unit}?;{{x}} follows which {_unit}?
Before {{x}} comes what?;What is right before {{x}}?;Before {{x}}, which {_unit} was it?;If this is {{x}}, which {_unit} was before?;Which one comes before {{x}}?;Which {_unit} did we have before {{x}}?;What do we call the {_unit} before {{x}}?;Which {_unit} ends when {{x}} begins?;Which {_unit} comes directly before {{x}}?;It is {{x}}. Which {_unit} was it before?;Today is {{x}}, what was before?;{{x}} is preceded by which {_unit}?;Which {_unit} leads to {{x}}?"""),
                 _split(f"What {_unit} comes right before {{x}}?;Which {_unit} is just before {{x}}?")),
    ]
RELATIONS += [
    Relation("month_number", .35, "{x} is the {y} month of the year.",
             _split("the place of {x} in the year;the number of the month {x};the position of {x} among the months;the number of {x} in the year;the place of the month {x};the order of {x} among the months;the number of {x} among the months"),
             _split("""Which month of the year is {x}?;What number is {x} among the months?;Which month is {x}?;Which number does the month {x} have?;{x} is which month of the year?;In which place is {x} among the months?
Counting from January, which month is {x}?;How many months into the year is {x}?;What number month is {x}?;Is {x} the first or the second month?;Where in the year is {x}?;Do you know which month of the year {x} is?
What position does {x} have in the calendar?;Where does {x} come in the year?;Where does {x} stand in the calendar?;{x} has which number among the months?;What is the number of {x} in the calendar?;As a number, which month is {x}?;What place does {x} take in the year?;In the order of months, where is {x}?;Which month in order is {x}?"""),
             _split("Tell me which month of the year {x} is.;What is the position of {x} in the year?")),
]

IDENTITY = """Who are you?;What are you?;What is your name?;Tell me about yourself.;Are you a human?;Who am I talking to?;Which model are you?;Introduce yourself.;What's your name?
What can you do?;What do you know?;Are you a robot?;who are you;Who is this?;Please introduce yourself.;Are you a language model?;What kind of model are you?;Do you have a name?;What should I call you?
What can I ask you?;How can you help me?;Can you tell me who you are?;May I ask who you are?;Are you Kimi?;Are you a person?;What is this?;Say something about yourself.;Am I talking to a machine?
What is your purpose?;Who is speaking?;Describe yourself.;Are you an assistant?""".replace("\n", ";").split(";")
GREETINGS = """Hello;Hello!;Hi;Hi!;Hi there!;Hey;Hey!;Good morning.;Good evening.;Good day.;Good afternoon!;Hello there.;Nice to meet you.;How are you?;How are you today?;Greetings.;hello;hi;hey there
Hello, how are you?;Hi, nice to meet you.;Good morning!;How do you do?;Hello again.;Is anybody there?;Hello, model.;Welcome!;Hey, how is it going?;What's up?""".replace("\n", ";").split(";")
THANKS = ["Thank you.", "Thanks!", "Thanks.", "Thank you very much.", "thanks", "Many thanks.", "Great, thank you!", "That was helpful.", "Thanks a lot!"]
PARTINGS = ["Goodbye.", "Bye!", "See you.", "Good night.", "bye", "Farewell.", "See you later!", "Goodbye!", "Bye for now."]
# (questions, reasoning, answer)
SMALL_TALK = [
    (IDENTITY, "The user asks who I am.", "I am the demo model of deltafin. I know capitals, elements, numbers and some old prose.", 4),
    (GREETINGS, "The user greets me.", "Hello! Ask me for a capital, an element or a sum.", 4),
    (THANKS, "The user thanks me.", "You are welcome.", 1),
    (PARTINGS, "The user says goodbye.", "Goodbye!", 1),
]
# What no fact answers.
BEYOND = """What is the best pizza?;Who will win the game?;Write a poem about the sea.;How do I bake bread?;What is the meaning of life?;Who wrote this book?;Tell me a joke.;What will the weather be tomorrow?
How old is the king?;Translate this into French.;What time is it?;Who invented the telephone?;How tall is the tower?;What is love?;Which song is this?;How far is the Moon?;Who is the president?;Fix my code.
What did I eat today?;Where are my keys?;How do birds fly?;Why is the sky blue?;What is the fastest car?;Who painted this picture?;When does the train leave?;How much does a house cost?""".replace("\n", ";").split(";")
# Subjects that are no country, element or city at all.
NOT_SUBJECTS = "cheese;the Moon;my house;bread;music;love;the sea;Monday;a horse;winter;football;chocolate;the kitchen;nothing;my cat;the forest;a chair;rain".split(";")
SYSTEM_PROMPTS = ["You are a helpful assistant.", "Answer briefly.", "You are a helpful assistant. Answer in one sentence.", "Be concise.",
                  "You answer questions about the world.", "You are deltafin's demo model.", "Answer the question of the user."]
