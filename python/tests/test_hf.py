# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of transformers with random weights: burst gives what eager does."""

import pytest
import torch
import torch.distributed as dist
import transformers
from transformers import AutoModelForCausalLM

import burst
import reference
import test_ranks
from burst import programs

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


@pytest.mark.all
def test_generation_with_a_cache():
    ids = torch.randint(0, 128, (1, 12), generator=torch.Generator().manual_seed(3))
    tokens = [make("gpt_oss", implementation).eval().generate(
        ids, max_new_tokens=12, do_sample=False) for implementation in ("eager", "burst")]
    assert torch.equal(*tokens)
    # A cache that has its size from the beginning prepares masks itself.
    with torch.inference_mode():
        tokens = [make("llama", implementation).eval().generate(
            ids, max_new_tokens=6, do_sample=False, cache_implementation="static",
            disable_compile=True) for implementation in ("eager", "burst")]
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


def on_ranks(name, packed, padded):
    """Logits, loss and gradients of shards are those of the whole on one process."""
    cp = burst.Sequence(dist.group.WORLD, "zigzag")
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(0, 128, (2, 48), generator=generator)
    labels = torch.where(torch.rand(2, 48, generator=generator) < 0.2, -100, ids)
    inputs = {}
    if padded:
        inputs["attention_mask"] = torch.ones(2, 48, dtype=torch.long)
        inputs["attention_mask"][1, 40:] = 0
        labels[1, 40:] = -100
    if packed:
        inputs["position_ids"] = torch.cat([torch.arange(n) for n in (20, 3, 25)])[None]
    whole = dict(inputs)
    if packed: # transformers wants them for each row
        whole["position_ids"] = whole["position_ids"].expand(2, 48)
    model = make(name, "eager")
    wanted = model(input_ids=ids, labels=labels, use_cache=False, **whole)
    wanted.loss.backward()
    gradients = {key: x.grad for key, x in model.named_parameters() if x.grad is not None}
    burst.hf.register("burst_cp", sequence=cp)
    model = make(name, "burst_cp")
    found = model(**burst.hf.shard(cp, ids, labels=labels, **inputs))
    found.loss.backward()
    kept = torch.ones(2, 48).bool() if not padded else inputs["attention_mask"].bool()
    logits = cp.unshard(found.logits, 1)
    error = (logits - wanted.logits)[kept].abs().max()
    assert error <= 1e-4 * wanted.logits[kept].abs().max(), error
    loss = found.loss.detach().clone()
    dist.all_reduce(loss)
    assert abs(loss - wanted.loss) <= 1e-4 * abs(wanted.loss), (loss, wanted.loss)
    for key, x in model.named_parameters():
        if x.grad is None:
            assert key not in gradients
            continue
        dist.all_reduce(x.grad)
        error = (x.grad - gradients[key]).abs().max()
        assert error <= 1e-4 * max(gradients[key].abs().max(), 1.0), (key, error)


def models_on_ranks():
    for name in sorted(configs()):
        on_ranks(name, packed=False, padded=False)
    on_ranks("gemma3", packed=True, padded=False)
    on_ranks("llama", packed=False, padded=True)
    cp = burst.Sequence(dist.group.WORLD, "zigzag")
    model = make("llama", "burst_cp")
    inputs = burst.hf.shard(cp, torch.zeros(1, 16, dtype=torch.long))
    for wrong, message in (
            (dict(attention_mask=None), "attention_mask: that of all 16 tokens .* got none"),
            (dict(attention_mask=torch.ones(1, 4)), "of all 16 tokens .* got 4"),
            (dict(attention_mask=torch.ones(1, 1, 4, 16)), "attention_mask: over ranks, models")):
        with pytest.raises(ValueError, match=message):
            model(**{**inputs, **wrong})
    with pytest.raises(ValueError, match=r"labels: \(1, 16\) is wanted, as of input_ids"):
        burst.hf.shard(cp, torch.zeros(1, 16), labels=torch.zeros(1, 4))


@pytest.mark.all
def test_models_on_ranks(tmp_path):
    test_ranks.on_ranks(4, tmp_path, models_on_ranks)


@pytest.mark.parametrize("padded", [False, True])
def test_steps_are_one_program(monkeypatch, padded):
    """A decoding loop compiles for its prompt, for its first step and for all others."""
    modules = []
    compile = programs.Program.compile
    monkeypatch.setattr(programs.Program, "compile", staticmethod(
        lambda module, *how: modules.append(module) or compile(module, *how)))
    # A batch of another size than elsewhere: nothing of it is known yet.
    ids = torch.randint(0, 128, (3, 12), generator=torch.Generator().manual_seed(3))
    kept = torch.ones_like(ids)
    if padded:
        kept[0, :5] = 0
    tokens = [make("llama", implementation).eval().generate(
        ids, attention_mask=kept, max_new_tokens=12, do_sample=False, pad_token_id=0)
        for implementation in ("eager", "burst")]
    assert torch.equal(*tokens)
    assert ["?" in module for module in modules] == [False, False, True]
