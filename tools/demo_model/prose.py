"""Public-domain prose: the King James text of Debian's package bible-kjv, as passages of one chapter each."""
import re
import subprocess

BOOKS = ("gen exo deu josh jdgs ruth 1sm 2sm 1ki 2ki psa prv eccl mat mark luke john acts").split()
CHARACTERS = 420  # of a passage, about: some 130 tokens
# Whole chapters are held out, every 40th: neighbouring passages would give each other away.
EVERY, HELD_OUT, DEVELOPMENT = 40, 17, 3


def _chapters():
    """[[verse, ...], ...] in the order of BOOKS."""
    chapters, last = [], None
    for book in BOOKS:
        # A verse number past the end of a book stops at its end.
        text = subprocess.run(["bible", "-f", f"{book}1:1-{book}200:200"], check=True, capture_output=True, text=True).stdout
        for line in text.splitlines():
            label, verse = line.split(" ", 1)
            chapter = label.rsplit(":", 1)[0]
            if chapter != last:
                chapters.append([])
                last = chapter
            chapters[-1].append(re.sub(r"\s+", " ", verse).strip())
    return chapters


def passages():
    """(training, development, held out): lists of passages."""
    parts = ([], [], [])
    for number, verses in enumerate(_chapters()):
        part = parts[{HELD_OUT: 2, DEVELOPMENT: 1}.get(number % EVERY, 0)]
        passage = ""
        for verse in verses:
            if passage and len(passage) + len(verse) > CHARACTERS:
                part.append(passage)
                passage = ""
            passage = f"{passage} {verse}".lstrip()
        part.append(passage)
    return parts
