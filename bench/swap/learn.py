# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs whose memory is larger than what they get: each takes a random generator,
and of how many parts of the data it is to do one, and returns what it found, in bytes, which are the same
wherever its pages have been in the meantime."""
import glob
import sqlite3

import numpy
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

SAMPLES, FEATURES = 40000, 64
ACCOUNTS, TRANSFERS = 40000, 2000
SENTENCES = 2000


def samples(random, parts):
    """Points around a plane that divides them into two classes."""
    points = random.standard_normal((SAMPLES // parts, FEATURES))
    weights = random.standard_normal(FEATURES)
    return points, (points @ weights + random.standard_normal(len(points)) > 0).astype(int)


def logistic(random, parts):
    points, classes = samples(random, parts)
    return LogisticRegression(max_iter=10, tol=0.5).fit(points, classes).coef_.tobytes()


def kmeans(random, parts):
    points, _ = samples(random, parts)
    found = KMeans(n_clusters=8, n_init=1, max_iter=5, random_state=1).fit(points)
    return found.cluster_centers_.tobytes()


def boosting(random, parts):
    points, classes = samples(random, parts)
    found = HistGradientBoostingClassifier(max_iter=5, early_stopping=False).fit(points, classes)
    return found.decision_function(points).tobytes()


def textrank(_random, parts):
    """The licences of Debian: which sentences are the most like the others."""
    sentences = []
    for path in sorted(glob.glob("/usr/share/common-licenses/*")):
        with open(path, encoding="utf-8", errors="replace") as file:
            sentences += [text for text in file.read().split(". ") if len(text) > 40]
    sentences = sentences[:int(SENTENCES / parts ** 0.5)]  # the links are the square of that
    terms = TfidfVectorizer().fit_transform(sentences)
    links = (terms @ terms.T).toarray()
    links /= links.sum(axis=0)
    rank = numpy.full(len(links), 1 / len(links))
    for _ in range(15):
        rank = 0.15 / len(links) + 0.85 * links @ rank
    return rank.tobytes()


def sqlite(random, parts):
    """Transfers between accounts, each a transaction, in a data base in memory."""
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER, note BLOB)")
    base.executemany("INSERT INTO account VALUES (?, 1000, ?)",
                     ((i, random.bytes(300)) for i in range(ACCOUNTS // parts)))
    base.commit()
    for source, target, amount in random.integers(0, ACCOUNTS // parts, (TRANSFERS // parts, 3)):
        with base:
            base.execute("UPDATE account SET balance = balance - ? WHERE id = ?",
                         (int(amount), int(source)))
            base.execute("UPDATE account SET balance = balance + ? WHERE id = ?",
                         (int(amount), int(target)))
    rows = base.execute("SELECT balance, note FROM account ORDER BY id")
    return b"".join(balance.to_bytes(8, "little", signed=True) + note for balance, note in rows)


PROGRAMS = {"logistic regression": logistic, "k-means": kmeans, "gradient boosting": boosting,
            "TextRank": textrank, "SQLite": sqlite}
