#!/usr/bin/env python3
"""Trains tiny tokenizers of many kinds on a text, and records what the `tokenizers` package makes of nasty strings.

    pip install tokenizers sentencepiece protobuf
    python3 tools/make_tokenizer_fixtures.py TEXT [FOLDER]

Writes FOLDER/<name>/tokenizer.json and golden.json; FOLDER is tests/data/tokenizers unless given. The tests need none of
these packages.
"""
import base64
import json
import pathlib
import sys
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

STRINGS = [
    "", " ", "  ", "\n", "a", "Call me Ishmael. Some years ago", "Hello, world!", "  leading and trailing  ",
    "naïve café — déjà vu", "nai\u0308ve cafe\u0301 A\u030a \u212b", "日本語のテキスト", "中文，标点。混合English文字",
    "한국어 텍스트", "العَرَبِيَّةُ والأرقام ١٢٣", "ภาษาไทยไม่มีช่องว่าง", "हिन्दी में पाठ", "עִבְרִית",
    "👩‍👩‍👧‍👦 🇫🇷 👍🏽 ☃️ 🏴\U000e0067\U000e0062\U000e007f", "tabs\tand\nnewlines\r\n\r\n  x\r", "a\u0000b\u0000", "\ufeffbom",
    "1234567890 3.14159 0x1F ½ ² Ⅷ ٣", "don't can't I'LL WE'VE they're 'tis o'clock", "a" * 300, "ab" * 150, " " * 100, "\n" * 40,
    "🙂" * 30, "x" + " " * 17 + "y", "\u00a0nbsp\u3000ideographic\u2003em\u200bzero\u2028line\u2029para\u0085nel",
    "ﬁ ﬀ ｆｕｌｌｗｉｄｔｈ ① ㎏ Ǆ ẛ̣ İstanbul ΣΑΣ ß ſ", "!!! ??? ... ,,, ;; -- ___ @#$%^&*()[]{}<>|\\/`~+=",
    "https://example.com/a?b=c&d=%20#e foo@bar.org", "def f(x):\n    return x  # tail\n\n\tif x:\r\n", "▁meta▁space ▁ x",
    "<s>inside</s> and <unk> <pad> [MASK]", "<0x41><0xE2><0x82><0xAC>", "Ġbyte Ċlevel", "\u0301combining first", "a\u0300\u0301\u0302\u0303" * 5,
    "\ufffd replacement \ufffd", "\u200d\u200c joiners \u2060", "mixed\u00adhyphen", "Zwölf Boxkämpfer jagen Viktor", "\U0010ffff \ue000 private",
    "<tool> x<tool>y <tool>  word<w>word <w> <W> Sub-Word  ", "<mask>  a <mask>b<mask>",
]
BROKEN = [b"\xff", b"ok \xe2\x82 cut", b"\xc0\xaf overlong", b"\xed\xa0\x80 surrogate", b"\xf0\x9f\x98 \xf0\x9f\x98\x80", b"tail \xe2", b"\x80\x80a", b"\xf4\x90\x80\x80"]

GPT4 = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SETS = r"[\p{L}&&[^\p{Han}a-c]]+|[\p{Han}[a-c]]+|\h{2}|[^\S\n]+|\w+|[^\w\s]|^\s|\s+$|\s"


def charsmap():
    """A small SentencePiece character map, compiled by SentencePiece itself."""
    import sentencepiece
    with tempfile.TemporaryDirectory() as folder:
        rules = pathlib.Path(folder, "rules.tsv")
        rows = [("ﬁ", "fi"), ("①", "1"), ("½", "1/2"), ("\t", " "), ("\n", " "), ("\r", " "), ("\u3000", " "), ("ｆ", "f"), ("㎏", "kg"),
                ("e\u0301", "é"), ("\u200b", ""), ("Σ", "S"), ("ab", "AB"), ("\U0001f642", ":)")]
        rules.write_text("".join(f"{' '.join(f'{ord(c):X}' for c in a)}\t{' '.join(f'{ord(c):X}' for c in b)}\n" for a, b in rows))
        text = pathlib.Path(folder, "text.txt")
        text.write_text("call me ishmael some years ago never mind how long precisely\n" * 20)
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=f"{folder}/m", vocab_size=35, model_type="unigram", hard_vocab_limit=False,
            normalization_rule_tsv=str(rules), minloglevel=2)
        from sentencepiece import sentencepiece_model_pb2
        proto = sentencepiece_model_pb2.ModelProto()
        proto.ParseFromString(pathlib.Path(folder, "m.model").read_bytes())
        return base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()


def trained(model, trainer, lines, normalizer=None, pre_tokenizer=None):
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def edited(tokenizer, **fields):
    """The tokenizer with parts of its file replaced; a dict is laid over the old part."""
    tree = json.loads(tokenizer.to_str())
    for key, value in fields.items():
        if isinstance(value, dict) and isinstance(tree.get(key), dict) and value.get("type", tree[key].get("type")) == tree[key].get("type"):
            tree[key].update(value)
        else:
            tree[key] = value
    return Tokenizer.from_str(json.dumps(tree))


BYTE_TOKENS = [f"<0x{b:02X}>" for b in range(256)]


def sentencepiece_decoder():
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def build(lines):
    byte_alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe = lambda **options: trainers.BpeTrainer(vocab_size=700, show_progress=False, **options)
    unigram = lambda **options: trainers.UnigramTrainer(vocab_size=500, show_progress=False, unk_token="<unk>", **options)
    meta = pre_tokenizers.Metaspace()

    t = trained(models.Unigram(), unigram(special_tokens=["<s>", "</s>", "<unk>"]), lines,
                normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]), meta)
    t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    t.decoder = decoders.Metaspace()
    yield "unigram-t5", t

    t = trained(models.Unigram(), unigram(special_tokens=["<unk>", "<s>", "</s>"] + BYTE_TOKENS), lines, None, meta)
    t = edited(t, model={"byte_fallback": True}, pre_tokenizer={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
               added_tokens=[a for a in json.loads(t.to_str())["added_tokens"] if a["id"] < 3])
    t.decoder = sentencepiece_decoder()
    yield "unigram-bytes", t

    t = trained(models.Unigram(), unigram(special_tokens=["<unk>"]), lines, None, meta)
    t = edited(t, normalizer={"type": "Sequence", "normalizers": [{"type": "Precompiled", "precompiled_charsmap": charsmap()}, {"type": "Strip", "strip_left": False, "strip_right": True}]})
    t.decoder = decoders.Metaspace()
    yield "unigram-precompiled", t

    t = trained(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True), bpe(special_tokens=["<unk>", "<s>", "</s>"] + BYTE_TOKENS), lines, None, meta)
    t = edited(t, pre_tokenizer=None, added_tokens=[a for a in json.loads(t.to_str())["added_tokens"] if a["id"] < 3])
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    t.decoder = sentencepiece_decoder()
    yield "bpe-llama2", t

    t = trained(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), bpe(special_tokens=["<unk>", "<s>", "</s>"], end_of_word_suffix="</w>"), lines,
                normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]),
                pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    t.decoder = decoders.BPEDecoder()
    yield "bpe-clip", t

    t = trained(models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(vocab_size=1500, special_tokens=["<unk>"], show_progress=False), lines,
                normalizers.Sequence([normalizers.Strip(), normalizers.NFKD(), normalizers.Lowercase(), normalizers.StripAccents()]), pre_tokenizers.Whitespace())
    t.decoder = decoders.CTC(pad_token="the", word_delimiter_token=",")
    yield "wordlevel-ctc", t

    t = trained(models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(vocab_size=2500, special_tokens=["<unk>"], show_progress=False), lines, None,
                pre_tokenizers.Sequence([
                    pre_tokenizers.CharDelimiterSplit("\t"), pre_tokenizers.Split(" ", "merged_with_next"), pre_tokenizers.Split(Regex("[aeiou]"), "merged_with_previous"),
                    pre_tokenizers.Split("-", "contiguous"), pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Punctuation("isolated"),
                    pre_tokenizers.Split(Regex("x*"), "isolated")]))
    yield "wordlevel-splits", t

    # Trained on what is recorded, so that every piece has an id of its own.
    t = trained(models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(special_tokens=["<unk>"], show_progress=False), STRINGS, None, pre_tokenizers.UnicodeScripts())
    yield "wordlevel-scripts", t

    t = trained(models.BPE(), bpe(special_tokens=["<|end|>"], initial_alphabet=byte_alphabet), lines, normalizers.NFC(),
                pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(GPT4), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    t = edited(t, model={"ignore_merges": True})
    t.add_special_tokens([AddedToken("<tool>", lstrip=True, rstrip=True, special=True, normalized=False)])
    t.add_tokens([AddedToken("<w>", single_word=True), AddedToken("Sub-Word", normalized=True, special=False), AddedToken("Sub", normalized=False)])
    t.decoder = decoders.ByteLevel()
    yield "bpe-qwen2", t

    t = trained(models.BPE(), bpe(special_tokens=["<s>", "</s>", "<mask>"], initial_alphabet=byte_alphabet), lines, None, pre_tokenizers.ByteLevel(add_prefix_space=True))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    t.post_processor = processors.Sequence([processors.ByteLevel(), processors.RobertaProcessing(("</s>", 1), ("<s>", 0))])
    t.decoder = decoders.ByteLevel()
    yield "bpe-roberta", t

    t = trained(models.BPE(), bpe(special_tokens=["<s>"], initial_alphabet=byte_alphabet), lines, None,
                pre_tokenizers.Sequence([pre_tokenizers.Split(Regex("[\r\n]"), "isolated"), pre_tokenizers.Split(Regex(r"\s?\p{L}+"), "isolated"),
                                         pre_tokenizers.Split(Regex(r"\s?\p{P}+"), "isolated"), pre_tokenizers.Split(Regex("[一-龥ࠀ-一가-퟿]+"), "isolated"),
                                         pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    t.decoder = decoders.ByteLevel()
    yield "bpe-deepseek", t

    t = trained(models.BPE(), bpe(initial_alphabet=byte_alphabet), lines, normalizers.ByteLevel(), pre_tokenizers.Split(Regex("Ġ?[^Ġ]+"), "isolated"))
    t.decoder = decoders.ByteLevel()
    yield "bpe-bytes-normalized", t

    t = trained(models.BPE(), bpe(initial_alphabet=byte_alphabet), lines, None,
                pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(O200K), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    t.decoder = decoders.ByteLevel()
    yield "bpe-o200k", t

    t = trained(models.BPE(), bpe(initial_alphabet=byte_alphabet), lines, None,
                pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SETS), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    t.decoder = decoders.ByteLevel()
    yield "bpe-sets", t

    t = trained(models.BPE(unk_token="[UNK]", continuing_subword_prefix="##"), bpe(special_tokens=["[UNK]", "[CLS]", "[SEP]"], continuing_subword_prefix="##"), lines,
                normalizers.BertNormalizer(lowercase=False, strip_accents=False), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous")]))
    t.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    t.decoder = decoders.WordPiece()
    yield "bpe-prefix", t

    t = trained(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20), trainers.WordPieceTrainer(vocab_size=600, special_tokens=["[UNK]", "[MASK]"], show_progress=False), lines,
                normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer())
    t.add_tokens([AddedToken("Ishmael", normalized=True, single_word=True)])
    yield "wordpiece-no-decoder", t


def record(tokenizer):
    golden = []
    for given in STRINGS + BROKEN:
        text = given if isinstance(given, str) else given.decode("utf-8", errors="replace")
        ids = tokenizer.encode(text).ids
        entry = {"text": text} if isinstance(given, str) else {"hex": given.hex()}
        entry |= {"ids": ids, "decoded": tokenizer.decode(ids) if ids else ""}
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        if plain != ids:
            entry["plain"] = plain
        everything = tokenizer.decode(ids, skip_special_tokens=False) if ids else ""
        if everything != entry["decoded"]:
            entry["with_special"] = everything
        golden.append(entry)
    return golden


def main():
    lines = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines(keepends=True)[:6000]
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).parent.parent / "tests/data/tokenizers")
    for name, tokenizer in build(lines):
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        (target / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
        golden = json.dumps(record(tokenizer), ensure_ascii=False).replace("}, {", "},\n{")
        (target / "golden.json").write_text(golden + "\n", encoding="utf-8")
        print(name, tokenizer.get_vocab_size(), sum(f.stat().st_size for f in target.iterdir()), "bytes")


if __name__ == "__main__":
    main()
