"""Images with text; sound and time series."""

import torch

from .parts import f, ids, ones
from .transformers_parts import BART, DECODER, ENCODER, TEXT, VIT, hf, image, text

# multimodal
CT = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    vocab_size=100,
    max_position_embeddings=32,
)
CV = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8)
IT = lambda: {"input_ids": ids(2, 10), "pixel_values": f(2, 3, 32, 32), "attention_mask": ones(2, 10)}
hf(
    "clip",
    "CLIPModel",
    "CLIPConfig",
    dict(text_config=dict(CT, eos_token_id=99), vision_config=CV, projection_dim=16),
    IT,
)
hf(
    "siglip",
    "SiglipModel",
    "SiglipConfig",
    dict(text_config=CT, vision_config=CV),
    lambda: {"input_ids": ids(2, 32), "pixel_values": f(2, 3, 32, 32)},
)
hf("siglip2-text", "Siglip2TextModel", "Siglip2TextConfig", CT, text(n=32))
hf(
    "chinese-clip",
    "ChineseCLIPModel",
    "ChineseCLIPConfig",
    dict(text_config=ENCODER, vision_config=CV, projection_dim=16),
    IT,
)
hf("align-text", "AlignTextModel", "AlignTextConfig", ENCODER, text())
hf(
    "blip",
    "BlipForConditionalGeneration",
    "BlipConfig",
    dict(
        text_config=dict(CT, bos_token_id=1, eos_token_id=2, sep_token_id=2, pad_token_id=0, encoder_hidden_size=32),
        vision_config=CV,
        projection_dim=16,
    ),
    lambda: {"pixel_values": f(2, 3, 32, 32), "input_ids": ids(2, 10), "attention_mask": ones(2, 10)},
)
hf(
    "blip2-qformer",
    "Blip2QFormerModel",
    "Blip2QFormerConfig",
    dict(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        encoder_hidden_size=32,
        cross_attention_frequency=1,
    ),
    lambda: {"query_embeds": f(2, 4, 32), "encoder_hidden_states": f(2, 9, 32)},
)
hf("git", "GitForCausalLM", "GitConfig", dict(TEXT, vision_config=CV), IT, use_cache=False)
hf(
    "vilt",
    "ViltForMaskedLM",
    "ViltConfig",
    dict(ENCODER, image_size=32, patch_size=8, max_image_length=-1),
    lambda: {
        "input_ids": ids(2, 10),
        "attention_mask": ones(2, 10),
        "token_type_ids": torch.zeros(2, 10, dtype=torch.long),
        "pixel_values": f(2, 3, 32, 32),
        "pixel_mask": ones(2, 32, 32),
    },
)
hf("flava-image", "FlavaImageModel", "FlavaImageConfig", VIT, image())
hf(
    "owlvit",
    "OwlViTForObjectDetection",
    "OwlViTConfig",
    dict(
        text_config=dict({k: v for k, v in CT.items() if k != "max_position_embeddings"}, max_position_embeddings=16),
        vision_config=CV,
        projection_dim=32,
    ),
    lambda: {"input_ids": ids(2, 10), "pixel_values": f(1, 3, 32, 32), "attention_mask": ones(2, 10)},
)
hf("groupvit-text", "GroupViTTextModel", "GroupViTTextConfig", dict(CT, eos_token_id=99), text())
hf(
    "donut-swin",
    "DonutSwinModel",
    "DonutSwinConfig",
    dict(image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4),
    image(),
)
hf(
    "qwen2-vl-text",
    "Qwen2VLTextModel",
    "Qwen2VLTextConfig",
    dict(DECODER, rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]}),
    text(),
    use_cache=False,
)

# audio, time series
AUDIO = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    conv_dim=[16, 16],
    conv_kernel=[10, 3],
    conv_stride=[5, 2],
    num_conv_pos_embeddings=8,
    num_conv_pos_embedding_groups=2,
    vocab_size=32,
    apply_spec_augment=False,
    mask_time_prob=0.0,
)
WAVE = lambda: {"input_values": f(2, 1000)}
hf("wav2vec2", "Wav2Vec2ForCTC", "Wav2Vec2Config", AUDIO, WAVE)
hf("hubert", "HubertForCTC", "HubertConfig", AUDIO, WAVE)
hf(
    "data2vec-audio",
    "Data2VecAudioForCTC",
    "Data2VecAudioConfig",
    dict(
        {k: v for k, v in AUDIO.items() if k != "num_conv_pos_embeddings"},
        conv_pos_kernel_size=5,
        num_conv_pos_embeddings=2,
    ),
    WAVE,
)
hf(
    "wav2vec2-conformer",
    "Wav2Vec2ConformerForCTC",
    "Wav2Vec2ConformerConfig",
    dict(AUDIO, position_embeddings_type="rotary", conv_depthwise_kernel_size=7),
    WAVE,
)
hf(
    "whisper",
    "WhisperForConditionalGeneration",
    "WhisperConfig",
    dict(BART, d_model=32, num_mel_bins=16, max_source_positions=20, max_target_positions=32),
    lambda: {"input_features": f(2, 16, 40), "decoder_input_ids": ids(2, 7)},
    use_cache=False,
)
hf(
    "speech-to-text",
    "Speech2TextForConditionalGeneration",
    "Speech2TextConfig",
    dict(
        {k: v for k, v in BART.items() if k != "max_position_embeddings"},
        input_feat_per_channel=16,
        input_channels=1,
        num_conv_layers=2,
        conv_channels=16,
        conv_kernel_sizes=[5, 5],
        max_source_positions=64,
        max_target_positions=64,
    ),
    lambda: {"input_features": f(2, 40, 16), "decoder_input_ids": ids(2, 7)},
    use_cache=False,
)
hf(
    "audio-spectrogram-transformer",
    "ASTForAudioClassification",
    "ASTConfig",
    dict(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_length=64, num_mel_bins=32
    ),
    lambda: {"input_values": f(2, 64, 32)},
)
hf(
    "encodec",
    "EncodecModel",
    "EncodecConfig",
    dict(
        num_filters=4,
        hidden_size=16,
        upsampling_ratios=[4, 2],
        codebook_size=16,
        codebook_dim=16,
        num_lstm_layers=1,
        target_bandwidths=[6.0],
        sampling_rate=2400,
    ),
    lambda: {"input_values": f(1, 1, 256)},
)
hf(
    "patchtst",
    "PatchTSTForPrediction",
    "PatchTSTConfig",
    dict(
        num_input_channels=3,
        context_length=32,
        patch_length=8,
        patch_stride=8,
        d_model=16,
        num_attention_heads=2,
        num_hidden_layers=2,
        ffn_dim=32,
        prediction_length=8,
    ),
    lambda: {"past_values": f(2, 32, 3)},
)
hf(
    "timesfm",
    "TimesFmModelForPrediction",
    "TimesFmConfig",
    dict(
        patch_length=8,
        context_length=32,
        horizon_length=8,
        hidden_size=32,
        intermediate_size=32,
        head_dim=8,
        num_attention_heads=4,
        num_hidden_layers=2,
    ),
    lambda: {"past_values": f(2, 32), "freq": torch.zeros(2, dtype=torch.long)},
)
