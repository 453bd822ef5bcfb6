"""Encoders with decoders."""

from .parts import ids, ones
from .transformers_parts import BART, hf

# encoder-decoder
S2S = lambda: {"input_ids": ids(2, 12), "attention_mask": ones(2, 12), "decoder_input_ids": ids(2, 7)}
for tag, model, config in [
    ("bart", "BartForConditionalGeneration", "BartConfig"),
    ("mbart", "MBartForConditionalGeneration", "MBartConfig"),
    ("marian", "MarianMTModel", "MarianConfig"),
    ("pegasus", "PegasusForConditionalGeneration", "PegasusConfig"),
    ("blenderbot", "BlenderbotForConditionalGeneration", "BlenderbotConfig"),
    ("m2m100", "M2M100ForConditionalGeneration", "M2M100Config"),
    ("plbart", "PLBartForConditionalGeneration", "PLBartConfig"),
]:
    hf(tag, model, config, dict(BART, forced_eos_token_id=2), S2S, use_cache=False)
T5 = dict(
    d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, vocab_size=100, pad_token_id=0, decoder_start_token_id=0
)
hf("mt5", "MT5ForConditionalGeneration", "MT5Config", dict(T5, feed_forward_proj="gated-gelu"), S2S, use_cache=False)
hf("umt5", "UMT5ForConditionalGeneration", "UMT5Config", dict(T5, feed_forward_proj="gated-gelu"), S2S, use_cache=False)
hf(
    "led",
    "LEDForConditionalGeneration",
    "LEDConfig",
    dict(
        {k: v for k, v in BART.items() if k != "max_position_embeddings"},
        max_encoder_position_embeddings=64,
        max_decoder_position_embeddings=64,
        attention_window=[8, 8],
    ),
    lambda: {"input_ids": ids(2, 16), "attention_mask": ones(2, 16), "decoder_input_ids": ids(2, 7)},
    use_cache=False,
)
hf(
    "prophetnet",
    "ProphetNetForConditionalGeneration",
    "ProphetNetConfig",
    dict(
        hidden_size=32,
        num_encoder_layers=2,
        num_decoder_layers=2,
        num_encoder_attention_heads=4,
        num_decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        vocab_size=100,
        max_position_embeddings=64,
    ),
    S2S,
    use_cache=False,
)
