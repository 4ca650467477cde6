# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of transformers with random weights: burst gives what eager does."""

import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM

import burst
import reference

SIZES = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, vocab_size=128, max_position_embeddings=256)


def configs():
    return {
        "llama": transformers.LlamaConfig(**SIZES),
        "qwen3": transformers.Qwen3Config(**SIZES, head_dim=16),
        "gemma3": transformers.Gemma3TextConfig(
            **SIZES, head_dim=16, sliding_window=8, attn_logit_softcapping=20.0,
            query_pre_attn_scalar=16,
            layer_types=["sliding_attention", "full_attention"]),
        "gpt_oss": transformers.GptOssConfig(
            **SIZES, head_dim=16, sliding_window=8, num_local_experts=2, num_experts_per_tok=1,
            layer_types=["sliding_attention", "full_attention"]),
    }


def make(name, implementation):
    burst.hf.register()
    torch.manual_seed(0)
    config = configs()[name]
    config._attn_implementation = implementation
    model = AutoModelForCausalLM.from_config(config, attn_implementation=implementation).float()
    torch.manual_seed(1)
    for parameter in model.parameters(): # sinks and biases are 0 at first
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, 0.5, 0.2)
    return model


def run(model, **inputs):
    model.zero_grad()
    logits = model(**inputs, use_cache=False).logits
    (logits.float() * torch.linspace(-1, 1, logits.shape[-1])).sum().backward()
    return logits, {name: x.grad for name, x in model.named_parameters() if x.grad is not None}


@pytest.mark.parametrize("name", sorted(configs()))
@pytest.mark.parametrize("padded", [False, True])
def test_a_model(name, padded):
    ids = torch.randint(0, 128, (2, 24), generator=torch.Generator().manual_seed(2))
    inputs = dict(input_ids=ids)
    if padded:
        inputs["attention_mask"] = torch.ones(2, 24, dtype=torch.long)
        inputs["attention_mask"][1, :5] = 0
    wanted, wanted_gradients = run(make(name, "eager"), **inputs)
    found, gradients = run(make(name, "burst"), **inputs)
    kept = inputs["attention_mask"].bool() if padded else torch.ones(2, 24).bool()
    assert (found - wanted)[kept].abs().max() <= 1e-4 * wanted[kept].abs().max()
    if padded: # rows of padding see nothing here, and the mean of all in eager
        return
    assert gradients.keys() == wanted_gradients.keys()
    for key, gradient in gradients.items():
        size = wanted_gradients[key].abs().max()
        assert (gradient - wanted_gradients[key]).abs().max() <= 1e-4 * max(size, 1.0), key


def test_generation_with_a_cache():
    ids = torch.randint(0, 128, (1, 12), generator=torch.Generator().manual_seed(3))
    tokens = [make("gpt_oss", implementation).eval().generate(
        ids, max_new_tokens=12, do_sample=False) for implementation in ("eager", "burst")]
    assert torch.equal(*tokens)


def layer(**arguments):
    module = torch.nn.Module()
    module.is_causal = True
    q, k, v = reference.draw(1, 4, 2, 16, 16, 8)
    return burst.hf.attend(module, q, k, v, arguments.pop("attention_mask", None), **arguments)[0]


def test_each_argument_has_its_effect():
    plain = layer()
    bias = torch.randn(1, 4, 16, 16)
    for arguments in (dict(scaling=0.1), dict(softcap=0.5), dict(s_aux=torch.ones(4)),
                      dict(position_bias=bias), dict(attention_mask=bias), dict(is_causal=False),
                      dict(attention_mask=torch.ones(1, 1, 16, 16, dtype=torch.bool))):
        assert not torch.allclose(layer(**arguments), plain, atol=1e-3), arguments.keys()
    q, k, v = reference.draw(1, 4, 2, 16, 16, 8)
    wanted, _ = reference.attention(q, k, v, burst.hf.causal)
    reference.assert_close(plain.transpose(1, 2), wanted)


@pytest.mark.parametrize("arguments, message", [
    (dict(dropout=0.1), "dropout: got 0.1"),
    (dict(cu_seq_lens_q=torch.zeros(2)), "cu_seq_lens_q: got"),
    (dict(head_mask=torch.ones(4)), "head_mask: got"),
    (dict(output_attentions=True), "output_attentions: got True"),
    (dict(sliding_window=4), "sliding_window: got 4, which must be in the mask"),
    (dict(attention_mask="causal"), "attention_mask: a tensor or a mask of burst.hf, got str"),
    (dict(attention_mask=torch.ones(16, 16)), r"attention_mask: \(batch, heads, queries, keys\)"),
])
def test_refusals(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        layer(**arguments)
