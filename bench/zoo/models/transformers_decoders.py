"""Decoders of text, with experts and with states among them."""

import torch
from torch import nn

from .parts import add, ids
from .transformers_parts import DECODER, TEXT, hf, text

for tag, model, config, extra in [
    ("mistral", "MistralForCausalLM", "MistralConfig", dict(sliding_window=8)),
    ("ministral", "MinistralForCausalLM", "MinistralConfig", dict(sliding_window=8, head_dim=8)),
    ("qwen2", "Qwen2ForCausalLM", "Qwen2Config", {}),
    ("gemma", "GemmaForCausalLM", "GemmaConfig", dict(head_dim=8)),
    ("gemma3", "Gemma3ForCausalLM", "Gemma3TextConfig", dict(head_dim=8, sliding_window=8)),
    ("phi", "PhiForCausalLM", "PhiConfig", {}),
    ("phi3", "Phi3ForCausalLM", "Phi3Config", {}),
    ("olmo2", "Olmo2ForCausalLM", "Olmo2Config", {}),
    ("olmo3", "Olmo3ForCausalLM", "Olmo3Config", dict(sliding_window=8)),
    ("starcoder2", "Starcoder2ForCausalLM", "Starcoder2Config", {}),
    ("cohere2", "Cohere2ForCausalLM", "Cohere2Config", dict(sliding_window=8)),
    ("glm", "GlmForCausalLM", "GlmConfig", dict(head_dim=8)),
    ("nemotron", "NemotronForCausalLM", "NemotronConfig", dict(head_dim=8)),
    ("persimmon", "PersimmonForCausalLM", "PersimmonConfig", {}),
    ("helium", "HeliumForCausalLM", "HeliumConfig", dict(head_dim=8)),
    ("exaone4", "Exaone4ForCausalLM", "Exaone4Config", dict(sliding_window=8, head_dim=8)),
    ("seed-oss", "SeedOssForCausalLM", "SeedOssConfig", dict(head_dim=8)),
    ("mixtral", "MixtralForCausalLM", "MixtralConfig", dict(num_local_experts=4)),
    ("phimoe", "PhimoeForCausalLM", "PhimoeConfig", dict(num_local_experts=4)),
    ("granitemoe", "GraniteMoeForCausalLM", "GraniteMoeConfig", dict(num_local_experts=4)),
    (
        "gpt-oss",
        "GptOssForCausalLM",
        "GptOssConfig",
        dict(num_local_experts=4, num_experts_per_tok=2, head_dim=8, sliding_window=8),
    ),
    (
        "deepseek-v2",
        "DeepseekV2ForCausalLM",
        "DeepseekV2Config",
        dict(
            num_key_value_heads=4,
            n_routed_experts=4,
            num_experts_per_tok=2,
            n_shared_experts=1,
            moe_intermediate_size=32,
            first_k_dense_replace=1,
            q_lora_rank=16,
            kv_lora_rank=16,
            qk_rope_head_dim=8,
            qk_nope_head_dim=8,
            v_head_dim=8,
            head_dim=8,
            n_group=1,
            topk_group=1,
        ),
    ),
    (
        "deepseek-v3",
        "DeepseekV3ForCausalLM",
        "DeepseekV3Config",
        dict(
            num_key_value_heads=4,
            n_routed_experts=4,
            num_experts_per_tok=2,
            n_shared_experts=1,
            moe_intermediate_size=32,
            first_k_dense_replace=1,
            q_lora_rank=16,
            kv_lora_rank=16,
            qk_rope_head_dim=8,
            qk_nope_head_dim=8,
            v_head_dim=8,
            n_group=2,
            topk_group=1,
        ),
    ),
    (
        "zamba2",
        "Zamba2ForCausalLM",
        "Zamba2Config",
        dict(
            n_mamba_heads=4,
            mamba_d_state=8,
            mamba_ngroups=1,
            mamba_headdim=16,
            num_mem_blocks=1,
            layers_block_type=["mamba", "hybrid"],
            chunk_size=8,
        ),
    ),
    (
        "jamba",
        "JambaForCausalLM",
        "JambaConfig",
        dict(
            num_experts=2,
            use_mamba_kernels=False,
            attn_layer_period=2,
            attn_layer_offset=1,
            mamba_d_state=8,
            mamba_dt_rank=4,
        ),
    ),
]:
    hf(tag, model, config, dict(DECODER, **extra), text(), use_cache=False)
hf(
    "gpt-bigcode",
    "GPTBigCodeForCausalLM",
    "GPTBigCodeConfig",
    dict(n_embd=32, n_layer=2, n_head=4, n_positions=64, vocab_size=100),
    text(),
    use_cache=False,
)
hf(
    "gpt-neo",
    "GPTNeoForCausalLM",
    "GPTNeoConfig",
    dict(
        hidden_size=32,
        num_layers=2,
        num_heads=4,
        attention_types=[[["global", "local"], 1]],
        vocab_size=100,
        max_position_embeddings=64,
        window_size=8,
    ),
    text(),
    use_cache=False,
)
hf(
    "gptj",
    "GPTJForCausalLM",
    "GPTJConfig",
    dict(n_embd=32, n_layer=2, n_head=4, n_positions=64, vocab_size=100, rotary_dim=4),
    text(),
    use_cache=False,
)
hf(
    "codegen",
    "CodeGenForCausalLM",
    "CodeGenConfig",
    dict(n_embd=32, n_layer=2, n_head=4, n_positions=64, vocab_size=100, rotary_dim=4),
    text(),
    use_cache=False,
)
hf(
    "ctrl",
    "CTRLLMHeadModel",
    "CTRLConfig",
    dict(n_embd=32, n_layer=2, n_head=4, dff=64, n_positions=64, vocab_size=100),
    text(),
    use_cache=False,
)
hf(
    "openai-gpt",
    "OpenAIGPTLMHeadModel",
    "OpenAIGPTConfig",
    dict(n_embd=32, n_layer=2, n_head=4, n_positions=64, vocab_size=100),
    text(),
)
hf(
    "opt",
    "OPTForCausalLM",
    "OPTConfig",
    dict(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        ffn_dim=64,
        vocab_size=100,
        max_position_embeddings=64,
        word_embed_proj_dim=32,
    ),
    text(),
    use_cache=False,
)
hf(
    "bloom",
    "BloomForCausalLM",
    "BloomConfig",
    dict(hidden_size=32, n_layer=2, n_head=4, vocab_size=100),
    text(),
    use_cache=False,
)
hf(
    "falcon",
    "FalconForCausalLM",
    "FalconConfig",
    dict(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        vocab_size=100,
        new_decoder_architecture=True,
        num_kv_heads=2,
    ),
    text(),
    use_cache=False,
)
hf(
    "mpt",
    "MptForCausalLM",
    "MptConfig",
    dict(d_model=32, n_layers=2, n_heads=4, vocab_size=100, max_seq_len=64),
    text(),
    use_cache=False,
)
hf(
    "dbrx",
    "DbrxForCausalLM",
    "DbrxConfig",
    dict(
        d_model=32,
        n_layers=2,
        n_heads=4,
        vocab_size=100,
        max_seq_len=64,
        ffn_config=dict(ffn_hidden_size=32, moe_num_experts=4, moe_top_k=2, ffn_act_fn={"name": "silu"}),
        attn_config=dict(kv_n_heads=2, clip_qkv=8.0, rope_theta=10000.0),
    ),
    text(),
    use_cache=False,
)
hf("biogpt", "BioGptForCausalLM", "BioGptConfig", TEXT, text(), use_cache=False)
hf(
    "xglm",
    "XGLMForCausalLM",
    "XGLMConfig",
    dict(d_model=32, ffn_dim=64, num_layers=2, attention_heads=4, vocab_size=100, max_position_embeddings=64),
    text(),
    use_cache=False,
)
hf(
    "mamba",
    "MambaForCausalLM",
    "MambaConfig",
    dict(hidden_size=32, num_hidden_layers=2, state_size=8, vocab_size=100),
    text(),
    use_cache=False,
)
hf(
    "mamba2",
    "Mamba2ForCausalLM",
    "Mamba2Config",
    dict(
        hidden_size=32,
        num_hidden_layers=2,
        state_size=8,
        vocab_size=100,
        num_heads=4,
        head_dim=16,
        n_groups=1,
        chunk_size=8,
    ),
    text(),
    use_cache=False,
)
hf(
    "falcon-mamba",
    "FalconMambaForCausalLM",
    "FalconMambaConfig",
    dict(hidden_size=32, num_hidden_layers=2, state_size=8, vocab_size=100),
    text(),
    use_cache=False,
)
hf(
    "rwkv",
    "RwkvForCausalLM",
    "RwkvConfig",
    dict(hidden_size=32, num_hidden_layers=2, vocab_size=100, context_length=64),
    text(False),
    use_cache=False,
)
hf(
    "xlstm",
    "xLSTMForCausalLM",
    "xLSTMConfig",
    dict(
        hidden_size=32,
        embedding_dim=32,
        num_hidden_layers=2,
        num_blocks=2,
        num_heads=2,
        vocab_size=100,
        chunkwise_kernel="chunkwise--native_autograd",
        sequence_kernel="native_sequence__native",
        step_kernel="native",
        chunk_size=8,
    ),
    text(False, n=16),
    use_cache=False,
)
hf(
    "qwen3-next",
    "Qwen3NextForCausalLM",
    "Qwen3NextConfig",
    dict(
        DECODER,
        head_dim=8,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=32,
        shared_expert_intermediate_size=32,
        linear_num_value_heads=4,
        linear_num_key_heads=2,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        layer_types=["linear_attention", "full_attention"],
    ),
    text(),
    use_cache=False,
)


# a decoding step over a static cache: what generation compiles
def decode_step():
    import transformers

    c = transformers.LlamaConfig(**DECODER)
    m = transformers.LlamaForCausalLM(c).eval()
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

    m.generation_config = transformers.GenerationConfig(
        use_cache=True,
        cache_implementation="static",
        max_length=16,
        cache_config={"batch_size": 1, "max_cache_len": 16},
    )
    w = TorchExportableModuleWithStaticCache(m, batch_size=1, max_cache_len=16)

    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = w

        def forward(self, input_ids, cache_position):
            return self.w(input_ids=input_ids, cache_position=cache_position)

    return Step().eval(), (ids(1, 1), torch.tensor([3]))


add("hf/llama-static-cache", decode_step)
