#!/usr/bin/env python3
"""A tiny checkpoint in the layout of sentence-transformers, and what that package computes for a few texts.

    make_embedding_fixtures.py        writes tests/data/sentence

Needs torch, transformers, tokenizers, sentence-transformers and safetensors. golden.safetensors holds `embeddings` of the
lines of texts.txt, and those of the encoder with each kind of pooling alone, by its name.
"""
import pathlib
import shutil

import torch
import transformers as hf
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer, models
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "sentence"
HIDDEN, EMBEDDING, MOST_TOKENS = 16, 8, 12
TEXTS = ["The white whale.", "a ship", "the sea is a whale, the sea is a ship, the sea is white.", "Ahab"]
POOLINGS = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]


def tokenizer():
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, ".", ",", *("##" + c for c in letters),
             "the", "whale", "ship", "sea", "white", "is"]
    out = Tokenizer(WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    out.normalizer = normalizers.BertNormalizer(lowercase=True)
    out.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    out.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                       special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return hf.PreTrainedTokenizerFast(tokenizer_object=out, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                      sep_token="[SEP]", mask_token="[MASK]", model_max_length=MOST_TOKENS), len(words)


@torch.no_grad()
def main():
    torch.manual_seed(5)
    fast, vocab = tokenizer()
    encoder = hf.BertModel(hf.BertConfig(vocab_size=vocab, hidden_size=HIDDEN, intermediate_size=24, num_hidden_layers=2,
                                         num_attention_heads=2, max_position_embeddings=16), add_pooling_layer=False)
    for p in encoder.parameters():
        p.normal_(0, 1 / p.shape[-1] ** 0.5 if p.dim() > 1 else 0.3)
    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir(parents=True)
    encoder.save_pretrained(ROOT)
    fast.save_pretrained(ROOT)
    transformer = models.Transformer(str(ROOT), max_seq_length=MOST_TOKENS)
    golden = {}
    for pooling in POOLINGS:
        alone = SentenceTransformer(modules=[transformer, models.Pooling(HIDDEN, pooling)], device="cpu")
        golden[pooling] = alone.encode(TEXTS, convert_to_tensor=True)
    dense = models.Dense(HIDDEN, EMBEDDING)
    dense.linear.weight.normal_(0, 0.5)
    whole = SentenceTransformer(modules=[transformer, models.Pooling(HIDDEN, "mean"), dense, models.Normalize()], device="cpu")
    golden["embeddings"] = whole.encode(TEXTS, convert_to_tensor=True)
    whole.save(str(ROOT))
    for name in ["README.md", "config_sentence_transformers.json"]:
        (ROOT / name).unlink(missing_ok=True)
    save_file({k: v.contiguous() for k, v in golden.items()}, ROOT / "golden.safetensors")
    (ROOT / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    print(sum(f.stat().st_size for f in ROOT.rglob("*") if f.is_file()), "bytes")


if __name__ == "__main__":
    main()
