# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs that need more memory than they get. Each takes a random generator, and the number of
parts of its data, and processes one part. Each returns its result as bytes,
which must not depend on paging. Programs that serve many requests add each request's time to
@took_us.
"""
import glob
import hashlib
import sqlite3
import time

import bson
import numpy
from bsddb3 import db
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

SAMPLES, FEATURES = 40000, 64
ACCOUNTS, TRANSFERS = 40000, 2000
SENTENCES = 2000
DOCUMENTS, FIELDS, QUERIES = 12000, 10, 12000
CACHE_MIB = 64  # more than the documents take, so that nothing goes to a file

took_us = []


def timed(request, *args):
    begin = time.perf_counter()
    answer = request(*args)
    took_us.append((time.perf_counter() - begin) * 1e6)
    return answer


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
    """Ranks the sentences of Debian's licences by similarity to the others."""
    sentences = []
    for path in sorted(glob.glob("/usr/share/common-licenses/*")):
        with open(path, encoding="utf-8", errors="replace") as file:
            sentences += [text for text in file.read().split(". ") if len(text) > 40]
    # the number of links is the square of this
    sentences = sentences[:int(SENTENCES / parts ** 0.5)]
    terms = TfidfVectorizer().fit_transform(sentences)
    links = (terms @ terms.T).toarray()
    links /= links.sum(axis=0)
    rank = numpy.full(len(links), 1 / len(links))
    for _ in range(15):
        rank = 0.15 / len(links) + 0.85 * links @ rank
    return rank.tobytes()


def sqlite(random, parts):
    """Transfers between accounts, each a transaction, in an in-memory database."""
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER, note BLOB)")
    base.executemany("INSERT INTO account VALUES (?, 1000, ?)",
                     ((i, random.bytes(300)) for i in range(ACCOUNTS // parts)))
    base.commit()

    def transfer(source, target, amount):
        with base:
            base.execute("UPDATE account SET balance = balance - ? WHERE id = ?", (amount, source))
            base.execute("UPDATE account SET balance = balance + ? WHERE id = ?", (amount, target))

    for three in random.integers(0, ACCOUNTS // parts, (TRANSFERS // parts, 3)).tolist():
        timed(transfer, *three)
    rows = base.execute("SELECT balance, note FROM account ORDER BY id")
    return b"".join(balance.to_bytes(8, "little", signed=True) + note for balance, note in rows)


def documents(random, parts, reads):
    """YCSB's documents, of ten fields, as BSON in an in-memory B-tree. A request reads a document
    or rewrites one of its fields. The choice follows Zipf's law with 0.99, scattered, as in ycsb.c.
    """
    count = DOCUMENTS // parts
    environment = db.DBEnv()
    environment.set_cachesize(0, CACHE_MIB << 20)
    environment.open(None, db.DB_CREATE | db.DB_PRIVATE | db.DB_INIT_MPOOL)
    base = db.DB(environment)
    base.open(None, dbtype=db.DB_BTREE, flags=db.DB_CREATE)
    keys = [b"user%09d" % number for number in random.permutation(count)]
    for key in keys:
        base.put(key, bson.encode({f"field{i}": random.bytes(100) for i in range(FIELDS)}))
    weights = 1 / numpy.arange(1, count + 1) ** 0.99
    wanted = random.choice(count, QUERIES // parts, p=weights / weights.sum())
    found = hashlib.sha256()

    def query(key, field, value):
        document = bson.decode(base.get(key))
        if value is None:
            return found.update(document[field])
        document[field] = value
        return base.put(key, bson.encode(document))

    for number in wanted.tolist():
        value = random.bytes(100) if random.integers(100) >= reads else None
        timed(query, keys[number], f"field{random.integers(FIELDS)}", value)
    for key in keys:
        found.update(base.get(key))
    return found.digest()


def documents_etc(random, parts):
    return documents(random, parts, 95)


def documents_sys(random, parts):
    return documents(random, parts, 75)


PROGRAMS = {"logistic regression": logistic, "k-means": kmeans, "gradient boosting": boosting,
            "TextRank": textrank, "SQLite": sqlite, "Berkeley DB ETC": documents_etc,
            "Berkeley DB SYS": documents_sys}
