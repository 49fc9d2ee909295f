// Ranks the results of the site's search; Sphinx appends this file to its search tools (`html_search_scorer`).
//
// Sphinx finds pages that have all words of a query, so a question in a sentence finds nothing. Here a word counts by its
// rarity, a word of a heading more than one of the text, and a heading more if the query has most of its words. The
// function of an exact name comes first.

const Ranking = {
  // Words of questions that say nothing about the subject, beside Sphinx's stop words.
  fillers: new Set(
    ("can cannot could do does doesnt did dont get gets got give has have how i if in is it me my need of on one"
      + " should that the there this tensorken to use using want was way what when where which who why will with would you")
      .split(" "),
  ),

  // The words of the pages for other words.
  synonyms: { nvidia: "gpu cuda", oom: "out memory", rng: "random", autograd: "grad", recompile: "compile again",
    recompiles: "compiled again", retrace: "compile again", optimiser: "optimizer", optimisers: "optimizers",
    optimise: "optimize", initialise: "initialize", autodiff: "derivatives", differentiate: "derivative",
    multiple: "several", make: "write", checkpointing: "checkpoint memory" },

  // Pages that readers seek less: a factor of their scores.
  weights: [["project/", 0.5], ["command-line", 0.7], ["adr/", 0.5], ["conformance", 0.7], ["writing-a-compiler", 0.8], ["examples/", 0.8]],

  results: 40,
  perPage: 3, // results of one page: itself and its sections

  words: (text) => {
    const stemmer = new Stemmer();
    const given = splitQuery(text.toLowerCase().replaceAll("'", "")).flatMap(
      (word) => (Object.hasOwn(Ranking.synonyms, word) ? Ranking.synonyms[word].split(" ") : [word]),
    );
    const kept = given.filter((word) => !stopwords.has(word) && !Ranking.fillers.has(word));
    return [...new Set(kept.map((word) => stemmer.stemWord(word)))];
  },

  lookup: (table, word) => {
    const found = Object.hasOwn(table, word) ? table[word] : [];
    return Array.isArray(found) ? found : [found];
  },

  // The pages whose text or title has a word, with a weight: less if they only have a longer word.
  pagesOf: (word) => {
    const { terms, titleterms } = Search._index;
    const pages = new Map();
    const add = (table, key, weight) =>
      Ranking.lookup(table, key).forEach((page) => pages.set(page, Math.max(weight, pages.get(page) ?? 0)));
    add(terms, word, 1);
    add(titleterms, word, 3);
    if (word.length > 3)
      for (const [table, weight] of [[terms, 0.3], [titleterms, 1.5]])
        for (const key of Object.keys(table)) if (key.startsWith(word)) add(table, key, weight);
    return pages;
  },

  // The factor of a page's text: less for a long page, which has more words of any question.
  factors: () => {
    if (Ranking._factors) return Ranking._factors;
    const { docnames, terms } = Search._index;
    const lengths = docnames.map(() => 0);
    for (const pages of Object.values(terms)) for (const page of [pages].flat()) lengths[page] += 1;
    const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
    Ranking._factors = docnames.map((_, page) => Ranking.weight(page) / (0.5 + (0.5 * lengths[page]) / mean));
    return Ranking._factors;
  },

  weight: (page) =>
    Ranking.weights.find(([prefix]) => Search._index.docnames[page].startsWith(prefix))?.[1] ?? 1,

  // The headings: each with its words, its page and its place there; made once for an index.
  headings: () => {
    Ranking._headings ??= Object.entries(Search._index.alltitles).flatMap(([title, places]) =>
      places.map(([page, id]) => ({ title, page, id, words: new Set(Ranking.words(title)) })),
    );
    return Ranking._headings;
  },

  headingScores: (words, rarity, pages) => {
    const { titles } = Search._index;
    return Ranking.headings().flatMap(({ title, page, id, words: own }) => {
      const shared = words.filter((word) => own.has(word));
      if (!shared.length) return [];
      const sum = (list) => list.reduce((total, word) => total + rarity.get(word), 0);
      const inText = words.filter((word) => !own.has(word) && pages.get(word).has(page));
      const coverage = sum(shared) / sum(words);
      const share = shared.length / own.size;
      const isPage = id === null || titles[page] === title;
      const score = (3 * sum(shared) * (0.4 + 0.6 * share) * (0.5 + coverage) + sum(inText))
        * (isPage ? 1.15 : 1) * Ranking.weight(page);
      const shown = isPage ? title : `${titles[page]} > ${title}`;
      return [{ page, title: shown, anchor: id === null ? "" : `#${id}`, score, coverage, kind: "title" }];
    });
  },

  pageScores: (words, rarity, pages) => {
    const scores = new Map();
    for (const word of words)
      for (const [page, weight] of pages.get(word)) {
        const found = scores.get(page) ?? { score: 0, matched: 0 };
        scores.set(page, { score: found.score + weight * rarity.get(word), matched: found.matched + 1 });
      }
    return [...scores].map(([page, { score, matched }]) => ({
      page, title: Search._index.titles[page], anchor: "", kind: "text",
      score: score * (matched / words.length) ** 2 * Ranking.factors()[page],
    }));
  },

  // Objects by name: `vmap`, `tk.vmap`, `Tensor.at`.
  objectScores: (query, rarity) => {
    const { objects, objnames, titles } = Search._index;
    const asked = query.toLowerCase().trim().replace(/^tk\./, "tensorken.").replace(/\(.*$/, "");
    const names = new Set(splitQuery(query.toLowerCase()));
    return Object.entries(objects).flatMap(([prefix, members]) =>
      members.flatMap(([page, type, , place, name]) => {
        const full = prefix ? `${prefix}.${name}` : name;
        const lower = full.toLowerCase();
        const last = lower.split(".").at(-1);
        let score = 0;
        if (lower === asked || last === asked || lower.endsWith(`.${asked}`)) score = 100;
        else if (last.includes("_") && last.split("_").every((part) => names.has(part))) score = 50;
        else if (names.has(last) && last.length > 2 && !Ranking.fillers.has(last))
          score = 1.2 * (rarity.get(new Stemmer().stemWord(last)) ?? 0);
        else if (names.size === 1 && asked.length > 2 && last.includes(asked)) score = 6;
        if (!score) return [];
        score += (prefix === "tensorken") + 0.5 * (prefix === "tensorken.Tensor");
        const anchor = place === "" ? full : place === "-" ? `${objnames[type][1]}-${full}` : place;
        const description = `${objnames[type][2]}, in ${titles[page]}`;
        return [{ page, title: full, anchor: `#${anchor}`, description, score, kind: "object" }];
      }),
    );
  },

  ranked: (query) => {
    const { docnames, filenames } = Search._index;
    const words = Ranking.words(query);
    const pages = new Map(words.map((word) => [word, Ranking.pagesOf(word)]));
    const known = words.filter((word) => pages.get(word).size);
    const rarity = new Map(known.map((word) => [word, Math.log(1 + docnames.length / pages.get(word).size)]));
    const headings = Ranking.headingScores(known, rarity, pages);
    // A section that has most words of the query leads further than its page.
    const answered = new Set(headings.filter(({ coverage }) => coverage > 0.5).map(({ page }) => page));
    const found = [
      ...headings,
      ...Ranking.pageScores(known, rarity, pages).filter(({ page }) => !answered.has(page)),
      ...Ranking.objectScores(query, rarity),
    ].sort((a, b) => b.score - a.score || a.title.localeCompare(b.title));
    const places = new Set();
    const perPage = new Map();
    return found
      .filter(({ page, anchor, title }) => {
        const place = `${page}${title}${anchor}`;
        const number = (perPage.get(page) ?? 0) + 1;
        if (places.has(place) || number > Ranking.perPage) return false;
        places.add(place);
        perPage.set(page, number);
        return true;
      })
      .slice(0, Ranking.results)
      .map(({ page, title, anchor, description, score, kind }) => [
        docnames[page], title, anchor, description ?? null, score, filenames[page], kind,
      ]);
  },
};

// Sphinx shows the last result first.
if (typeof Search !== "undefined") Search._performSearch = (query) => Ranking.ranked(query).reverse();
