//===- ErrorsTest.cpp - what the compiler refuses -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Problem.h"

#include <cstring>

using namespace burst;
using namespace burst::test;

static constexpr const char *two = R"(shard.grid @g(shape = 2)
!q = tensor<1x4x1x4xf32>
!l = tensor<1x1x4xf32>
func.func @one(%q: !q) -> !q {
  %o, %lse = burst.attention %q, %q, %q sequence <@g, contiguous> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}
func.func @two(%q: !q) -> !q {
  %o, %lse = burst.attention %q, %q, %q sequence <@g, contiguous> strategy <best> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}
)";

struct Refusal {
  burst_code code;
  std::string message, location;
};

static Refusal
refuse(std::string_view text,
       burst_compile_config config = api::make<burst_compile_config>()) {
  auto program = api::Program::compile(text, config);
  if (program) {
    ADD_FAILURE() << "compiled";
    return {};
  }
  const api::Status &error = program.error();
  return {error.code(), std::string(error.message()),
          std::string(error.location())};
}

TEST(Errors, ofTheParserAreWhereTheyAre) {
  auto config = api::make<burst_compile_config>();
  config.name = "f.mlir";
  Refusal found = refuse("func.func @f() {\n  return\noops\n", config);
  EXPECT_EQ(found.code, BURST_INVALID_PROGRAM);
  EXPECT_EQ(found.location, "f.mlir:3:1");
  EXPECT_EQ(found.message.find("f.mlir:3:1: custom op 'oops' is unknown"), 0u)
      << found.message;
}

TEST(Errors, ofPassesAreAtTheOp) {
  auto config = api::make<burst_compile_config>();
  config.entry = "two";
  Refusal found = refuse(two, config);
  EXPECT_EQ(found.location, "text:9:14");
  EXPECT_NE(found.message.find("'burst.attention' op pins the strategy "
                               "best, which is not known"),
            std::string::npos)
      << found.message;
}

TEST(Errors, ofOtherFunctionsDoNotMatter) {
  auto config = api::make<burst_compile_config>();
  config.entry = "one";
  EXPECT_EQ(compiled(two, config).name(), "one");
}

TEST(Errors, ofALoweredProgramHaveNotes) {
  // Rank 0 computes its own slice twice.
  Refusal found = refuse(R"(shard.grid @g(shape = 1)
#l = #ring.layout<contiguous over 1>
func.func @f(%q: tensor<1x4x1x4xf32> {ring.shard = #ring.shard<#l, dim 1 extent 4>})
    -> (tensor<1x4x1x4xf32> {ring.shard = #ring.shard<#l, dim 1 extent 4>},
        tensor<1x1x4xf32> {ring.shard = #ring.shard<#l, dim 2 extent 4>})
    attributes {ring.grid = @g} {
  return %q, %q : tensor<1x4x1x4xf32>, tensor<1x4x1x4xf32>
}
)");
  EXPECT_EQ(found.code, BURST_INVALID_PROGRAM);
  EXPECT_FALSE(found.location.empty());
}

TEST(Errors, nameTheFunctionsThereAre) {
  EXPECT_EQ(refuse(two).message,
            "text: several functions can be run, name one with entry: one, "
            "two");
  auto config = api::make<burst_compile_config>();
  config.entry = "three";
  EXPECT_EQ(refuse(two, config).message,
            "text: found no function 'three' that can be run, there are: one, "
            "two");
  EXPECT_EQ(refuse("").message, "text: no function with burst.attention, nor "
                                "the program of a rank");
}

TEST(Errors, haveNoFunctionWithoutName) {
  auto config = api::make<burst_compile_config>();
  config.entry = "";
  Refusal found = refuse(two, config);
  EXPECT_EQ(found.code, BURST_INVALID_ARGUMENT);
  EXPECT_EQ(found.message, "burst_compile_config: entry: empty, wanted the "
                           "name of a function, or NULL for the only one");
}

TEST(Errors, textNeedNotEndWithZero) {
  std::string text = std::string(two) + "oops";
  auto config = api::make<burst_compile_config>();
  config.entry = "one";
  EXPECT_TRUE(compiled({text.data(), strlen(two)}, config).get());
}

TEST(Errors, ofTheConfig) {
  auto config = api::make<burst_compile_config>();
  config.entry = "one";
  config.processor = "x86-99";
  Refusal found = refuse(two, config);
  EXPECT_EQ(found.code, BURST_INVALID_ARGUMENT);
  EXPECT_EQ(found.message.find(
                "burst_compile_config: unknown processor 'x86-99' for "),
            0u);
  config.processor = nullptr;
  config.features = "+sse9";
  EXPECT_EQ(
      refuse(two, config)
          .message.find("burst_compile_config: unknown feature 'sse9' for "),
      0u);
  config.features = "sse2";
  EXPECT_EQ(refuse(two, config).message,
            "burst_compile_config: feature 'sse2', wanted +name or -name");
  config.features = nullptr;
  config.dump_directory = "/dev/null/d";
  found = refuse(two, config);
  EXPECT_EQ(found.code, BURST_SYSTEM);
  EXPECT_EQ(found.message,
            "burst_compile_config: dump_directory '/dev/null/d': Not a "
            "directory");
  config.size = 4;
  EXPECT_EQ(refuse(two, config).message,
            "burst_compile_config: size 4, wanted a multiple of 8 from 8 to "
            "80");
  // What is not covered is not read.
  config.size = offsetof(burst_compile_config, dump_directory);
  EXPECT_TRUE(compiled(two, config).get());
}

TEST(Errors, ofMissingArguments) {
  burst_program *program = nullptr;
  EXPECT_EQ(take(burst_compile_text(nullptr, 0, nullptr, &program)),
            "burst_compile_text: text: null");
  EXPECT_EQ(take(burst_compile_text("", 0, nullptr, nullptr)),
            "burst_compile_text: program: null");
  EXPECT_EQ(take(burst_compile_to_file(nullptr, 0, nullptr, "x")),
            "burst_compile_to_file: text: null");
  EXPECT_EQ(take(burst_compile_to_file("", 0, nullptr, nullptr)),
            "burst_compile_to_file: path: null");
  EXPECT_EQ(take(burst_compile_to_file("", 0, nullptr, "")),
            "burst_compile_to_file: path: empty, wanted that of a file to "
            "write");
  burst_attention attention = smallAttention();
  EXPECT_EQ(take(burst_compile_attention(nullptr, nullptr, &program)),
            "burst_attention: null");
  EXPECT_EQ(take(burst_compile_attention(&attention, nullptr, nullptr)),
            "burst_compile_attention: program: null");
  char *text;
  EXPECT_EQ(take(burst_attention_text(nullptr, &text)),
            "burst_attention: null");
  EXPECT_EQ(take(burst_attention_text(&attention, nullptr)),
            "burst_attention_text: text: null");
  burst_text_destroy(nullptr);
  EXPECT_EQ(take(burst_explain_text(nullptr, 0, nullptr, &text)),
            "burst_explain_text: text: null");
  EXPECT_EQ(take(burst_explain_text("", 0, nullptr, nullptr)),
            "burst_explain_text: told: null");
  EXPECT_EQ(take(burst_cache_create(nullptr)),
            "burst_cache_create: cache: null");
  EXPECT_EQ(burst_cache_size(nullptr), 0);
  EXPECT_EQ(burst_cache_hits(nullptr), 0);
  burst_cache_destroy(nullptr);
  EXPECT_EQ(take(burst_program_prove(nullptr, nullptr, 0)),
            "burst_program_prove: program: null");
  EXPECT_EQ(take(burst_program_prove(smallProgram().get(), nullptr, 3)),
            "burst_program_prove: globals: null");
}

/// Of which nothing may be read.
TEST(Errors, ofTextsOfAbsurdLength) {
  burst_program *program = nullptr;
  for (size_t length : {size_t{1} << 40, SIZE_MAX, (size_t{1} << 30) + 1}) {
    std::string wanted = ": length: " + std::to_string(length) +
                         " bytes, wanted at most 1073741824";
    EXPECT_EQ(take(burst_compile_text("", length, nullptr, &program)),
              "burst_compile_text" + wanted);
    EXPECT_EQ(take(burst_compile_to_file("", length, nullptr, "x")),
              "burst_compile_to_file" + wanted);
  }
}

TEST(Errors, ofTablesThatAreTooShort) {
  burst_attention attention = smallAttention();
  attention.batch = attention.query_length = attention.key_length = -1;
  attention.mask = "[causal, documents]";
  api::Program program = compiled(attention);
  Problem problem(attention, 23, 29);
  std::vector<burst_tensor> globals = problem.globals(program);
  auto device = api::Device::cpu(1);
  ASSERT_TRUE(device);
  auto config = api::make<burst_run_all_config>();
  config.device = device->get();
  expectSuccess(program.runAll(config, globals));
  problem.expectResults();
  // The same program, with a table that ends before the last key.
  for (int64_t i = 0; i < program.numArguments(); ++i)
    if (std::string_view(program.parameter(i).name) == "key_ids")
      globals[i].sizes[0] = 28;
  api::Status status = program.runAll(config, globals);
  EXPECT_EQ(status.code(), BURST_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find(
                "size of dimension 0 of key_ids: 28, wanted at least 29"),
            std::string::npos)
      << status.message();
}

/// What the types leave open the caller's tensors say, each for itself.
TEST(Errors, ofBatchesThatDiffer) {
  burst_attention attention = smallAttention();
  attention.batch = -1;
  api::Program program = compiled(attention);
  Problem problem(attention);
  std::vector<burst_tensor> globals = problem.globals(program);
  auto device = api::Device::cpu(1);
  ASSERT_TRUE(device);
  auto config = api::make<burst_run_all_config>();
  config.device = device->get();
  const char *const names[] = {"q", "k", "v", "result 0", "result 1"};
  ASSERT_EQ(globals.size(), std::size(names));
  for (size_t i = 0; i < globals.size(); ++i) {
    ASSERT_EQ(globals[i].sizes[0], 2);
    globals[i].sizes[0] = 1;
    api::Status status = program.runAll(config, globals);
    globals[i].sizes[0] = 2;
    EXPECT_EQ(status.code(), BURST_INVALID_ARGUMENT);
    std::string wanted =
        std::string("batch of ") + names[i] + ": 1, wanted at least 2";
    EXPECT_NE(status.message().find(wanted), std::string::npos)
        << status.message();
  }
  for (burst_tensor &tensor : globals)
    tensor.sizes[0] = 1;
  expectSuccess(program.runAll(config, globals));
}

#if defined(__x86_64__)
TEST(Errors, processorsThatThisMachineCannotStandInFor) {
  auto config = api::make<burst_compile_config>();
  config.entry = "one";
  config.processor = "x86-64";
  EXPECT_EQ(compiled(two, config).target().find("x86-64, "), 0u);
  if (__builtin_cpu_supports("avx512f"))
    GTEST_SKIP() << "this machine has AVX-512";
  config.processor = "x86-64-v4";
  Refusal found = refuse(two, config);
  EXPECT_EQ(found.code, BURST_INVALID_ARGUMENT);
  EXPECT_EQ(found.message.find("burst_compile_config: processor x86-64-v4 with "
                               "avx512"),
            0u)
      << found.message;
}
#endif
