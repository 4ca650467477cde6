//===- SafetensorsParseTest.cpp - Tests of the format's rules -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/data/Safetensors.h"

#include <gtest/gtest.h>

using namespace burst::data;

namespace {

/// A file of this header and `dataSize` bytes of 1.
std::string fileOf(std::string_view header, size_t dataSize) {
  std::string file(8, '\0');
  uint64_t size = header.size();
  std::memcpy(file.data(), &size, 8);
  return file.append(header).append(dataSize, '\1');
}

std::optional<Archive> parseText(std::string_view file, std::string &error) {
  return parse(std::as_bytes(std::span(file)), error);
}

using Parts = std::vector<std::string>;

/// The file is refused, and the message has these parts.
void refuseFile(std::string_view file, const Parts &parts) {
  std::string error;
  EXPECT_FALSE(parseText(file, error));
  for (const std::string &part : parts)
    EXPECT_NE(error.find(part), error.npos) << part << " is not in: " << error;
  EXPECT_LT(error.size(), 600u);
  EXPECT_TRUE(std::ranges::all_of(error, [](char c) {
    return c >= ' ' && c <= '~'; // Nothing a file could do to a terminal.
  })) << error;
  EXPECT_FALSE(error.ends_with('.')) << error;
}

void refuse(std::string_view header, size_t dataSize, const Parts &parts) {
  SCOPED_TRACE(header.substr(0, 200));
  refuseFile(fileOf(header, dataSize), parts);
}

/// A header of one tensor 'q' with these fields.
std::string entry(std::string_view dtype, std::string_view shape,
                  std::string_view offsets) {
  return fmt::format(R"({{"q":{{"dtype":{},"shape":{},"data_offsets":{}}}}})",
                     dtype, shape, offsets);
}

/// One entry of a U8 vector over these bytes.
std::string vectorOver(std::string_view name, int begin, int end) {
  return fmt::format(
      R"("{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})", name,
      end - begin, begin, end);
}

std::string headerOf(const std::vector<std::string> &entries) {
  return fmt::format("{{{}}}", fmt::join(entries, ","));
}

Archive accept(std::string_view header, size_t dataSize) {
  std::string error;
  std::optional<Archive> archive = parseText(fileOf(header, dataSize), error);
  EXPECT_TRUE(archive) << error;
  return archive.value_or(Archive());
}

TEST(SafetensorsParse, Tensor) {
  Archive archive = accept(entry(R"("I16")", "[2,3]", "[0,12]"), 12);
  ASSERT_TRUE(archive.tensors.contains("q"));
  const Tensor &tensor = archive.tensors["q"];
  EXPECT_EQ(tensor.dtype, DType::I16);
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(tensor.toDoubles(), std::vector<double>(6, 0x101));
}

TEST(SafetensorsParse, NothingInIt) {
  EXPECT_TRUE(accept("{}", 0).tensors.empty());
  EXPECT_TRUE(accept("{}      ", 0).tensors.empty());
  EXPECT_TRUE(accept(R"({"__metadata__":{}})", 0).metadata.empty());
}

TEST(SafetensorsParse, ScalarsAndEmptyTensors) {
  EXPECT_EQ(accept(entry(R"("F32")", "[]", "[0,4]"), 4).tensors["q"].numel(),
            1u);
  EXPECT_EQ(accept(entry(R"("F32")", "[0,9]", "[0,0]"), 0).tensors["q"].numel(),
            0u);
  // Empty tensors at the start, between two others, and at the end.
  Archive archive =
      accept(headerOf({vectorOver("z", 0, 0), vectorOver("a", 0, 2),
                       vectorOver("b", 2, 2), vectorOver("c", 2, 4),
                       vectorOver("d", 4, 4)}),
             4);
  EXPECT_EQ(archive.tensors.size(), 5u);
}

TEST(SafetensorsParse, Metadata) {
  Archive archive =
      accept(R"({"__metadata__":{"format":"pt","caf\u00e9":"\u0000\"\\"}})", 0);
  EXPECT_EQ(archive.metadata["format"], "pt");
  EXPECT_EQ(archive.metadata["caf\xc3\xa9"], std::string("\0\"\\", 3));
}

TEST(SafetensorsParse, DataInAnyOrderAndUnaligned) {
  Archive archive =
      accept(R"({"b":{"data_offsets":[1,9],"shape":[1],"dtype":"F64"},)"
             R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]} } )",
             9);
  EXPECT_EQ(archive.tensors["a"].get(0), 1);
  EXPECT_EQ(archive.tensors["b"].get(0),
            std::bit_cast<double>(uint64_t{0x0101010101010101}));
}

TEST(SafetensorsParse, EmptyName) {
  EXPECT_TRUE(accept(headerOf({vectorOver("", 0, 1)}), 1).tensors.contains(""));
}

TEST(SafetensorsParse, TooShort) {
  refuseFile("", {"found 0 bytes", "at least the 8 of the header length"});
  refuseFile("1234567", {"found 7 bytes"});
}

TEST(SafetensorsParse, HeaderLength) {
  refuseFile(fileOf("{}", 0).substr(0, 9),
             {"header length", "found 2", "at most 1", "rest of the file"});
  refuseFile(std::string(16, '\xff'),
             {"header length", "found 18446744073709551615", "at most 8"});
}

TEST(SafetensorsParse, HeaderOver100MB) {
  refuse(std::string(100'000'001, ' '), 0,
         {"header length", "found 100000001", "at most 100000000"});
}

TEST(SafetensorsParse, HeaderIsNoObject) {
  Parts parts = {"header", "wanted a JSON object"};
  for (std::string_view header :
       {"", " ", "[]", "12", "null", "\"{}\"", " {}", "\n{}", "\xef\xbb\xbf{}",
        "{}\n", "{}\t", "{}x", "{", "{\"q\":"})
    refuse(header, 0, parts);
  refuse(std::string_view("{}\0", 3), 0, {"'{}\\x00'"});
  // The parser would take the zero byte for the end of its input.
  refuse(std::string_view("{}\0}", 4), 0, parts);
}

TEST(SafetensorsParse, HeaderIsNotJson) {
  for (std::string_view header :
       {"{{}", "{q}", "{'q':{}}", "{} {}", "{}}", "{\"q\":}", "{\"q\":{},}",
        "{/**/}", "{\"\x01\":{}}", "{\"\\ud800\":{}}"})
    refuse(header, 0, {"header", "syntax error", "wanted a JSON object"});
  refuse("{\"\xff\":{}}", 0, {"header", "UTF-8"});
  refuse(entry(R"("U8")", "[1e999]", "[0,1]"), 1, {"number overflow"});
}

TEST(SafetensorsParse, MessagesStayShort) {
  refuse("{\"" + std::string(100000, 'x') + "\":1}", 0, {"xxx...'"});
  refuse("{\"" + std::string(100000, 'x') + "}", 0, {"..., wanted a JSON"});
  refuse("{\"a\\u001b[2J\":1}", 0, {"tensor 'a\\x1b[2J'"});
}

TEST(SafetensorsParse, DeepNesting) {
  std::string objects;
  for (int i = 0; i != 1000000; ++i)
    objects += "{\"dtype\":";
  refuse(objects + std::string(1000000, '}'), 0,
         {"tensor 'dtype'", "found an object", "wanted a string"});
  refuse("{\"q\":" + std::string(1000000, '[') + "}", 0,
         {"tensor 'q'", "found an array", "wanted an object"});
  refuse(entry(R"("U8")", std::string(1000000, '['), "[0,1]"), 1,
         {"tensor 'q'", "shape", "found an array", "wanted an integer"});
}

TEST(SafetensorsParse, EntryIsNoObject) {
  refuse(R"({"q":1})", 0, {"tensor 'q'", "found 1", "wanted an object"});
  refuse(R"({"q":null})", 0, {"tensor 'q'", "null", "wanted an object"});
  refuse(R"({"q":"F32"})", 0, {"tensor 'q'", "'F32'", "wanted an object"});
  refuse(R"({"q":[]})", 0, {"tensor 'q'", "an array", "wanted an object"});
  refuse(R"({"__metadata__":1})", 0, {"__metadata__", "wanted an object"});
}

TEST(SafetensorsParse, MissingKeys) {
  refuse(R"({"q":{}})", 0, {"tensor 'q'", "no 'dtype'"});
  refuse(R"({"q":{"shape":[],"data_offsets":[0,4]}})", 4, {"no 'dtype'"});
  refuse(R"({"q":{"dtype":"F32","data_offsets":[0,4]}})", 4,
         {"tensor 'q'", "no 'shape'"});
  refuse(R"({"q":{"dtype":"F32","shape":[]}})", 4,
         {"tensor 'q'", "no 'data_offsets'"});
}

TEST(SafetensorsParse, UnknownKeys) {
  refuse(R"({"q":{"dtype":"F32","strides":[1]}})", 0,
         {"tensor 'q'", "unknown key 'strides'", "'data_offsets'"});
}

TEST(SafetensorsParse, Duplicates) {
  refuse(headerOf({vectorOver("q", 0, 1), vectorOver("q", 1, 2)}), 2,
         {"tensor 'q'", "found twice", "wanted once"});
  // Equal once the escapes are read.
  refuse(headerOf({vectorOver("q", 0, 1), vectorOver("\\u0071", 1, 2)}), 2,
         {"tensor 'q'", "found twice"});
  for (std::string_view field :
       {R"("dtype":"U8")", R"("shape":[1])", R"("data_offsets":[0,1])"}) {
    std::string_view name = field.substr(1, field.find(':') - 2);
    refuse(fmt::format("{{\"q\":{{{},{}}}}}", field, field), 1,
           {"tensor 'q'", std::string(name), "found twice"});
  }
  refuse(R"({"__metadata__":{},"__metadata__":{}})", 0,
         {"__metadata__", "found twice"});
  refuse(R"({"__metadata__":{"a":"","a":""}})", 0,
         {"__metadata__: 'a'", "found twice"});
}

TEST(SafetensorsParse, DtypeOfAnotherType) {
  for (std::string_view found : {"1", "null", "true", "1.5"})
    refuse(entry(found, "[1]", "[0,1]"), 1,
           {"tensor 'q'", "dtype", "found", std::string(found),
            "wanted a string"});
  refuse(entry("[]", "[1]", "[0,1]"), 1, {"an array", "wanted a string"});
  refuse(entry("{}", "[1]", "[0,1]"), 1, {"an object", "wanted a string"});
}

TEST(SafetensorsParse, DtypeUnknown) {
  for (std::string dtype : {"F8_E4M3", "U64", "f32", ""})
    refuse(entry("\"" + dtype + "\"", "[1]", "[0,1]"), 1,
           {"tensor 'q'", "'" + dtype + "'",
            "F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL"});
}

TEST(SafetensorsParse, ShapeOfAnotherType) {
  for (std::string_view found : {"1", "null", "false", "-1", "1.5"})
    refuse(entry(R"("U8")", found, "[0,1]"), 1,
           {"tensor 'q'", "shape", std::string(found),
            "wanted an array of integers"});
  refuse(entry(R"("U8")", "\"[1]\"", "[0,1]"), 1, {"'[1]'", "an array"});
  refuse(entry(R"("U8")", "{}", "[0,1]"), 1, {"an object", "an array"});
}

TEST(SafetensorsParse, Dimensions) {
  for (std::string_view found :
       {"-1", "-0", "-9223372036854775808", "1.0", "1e2", "true", "null",
        "9223372036854775808", "18446744073709551615", "18446744073709551616",
        "-9223372036854775809"})
    refuse(entry(R"("U8")", fmt::format("[{}]", found), "[0,1]"), 1,
           {"tensor 'q'", "shape", std::string(found), "wanted an integer"});
  refuse(entry(R"("U8")", "[\"1\"]", "[0,1]"), 1, {"'1'", "an integer"});
  refuse(entry(R"("U8")", "[{}]", "[0,1]"), 1, {"an object", "an integer"});
}

TEST(SafetensorsParse, ShapeOverflow) {
  refuse(entry(R"("U8")", "[4294967296,4294967296]", "[0,0]"), 0,
         {"tensor 'q'", "shape", "[4294967296, 4294967296] of U8", "2^63"});
  refuse(entry(R"("F64")", "[9223372036854775807]", "[0,8]"), 8, {"2^63"});
  refuse(entry(R"("U8")", "[0,4294967296,4294967296]", "[0,0]"), 0, {"2^63"});
}

TEST(SafetensorsParse, Rank) {
  std::string ones = "[1";
  for (int i = 1; i != 16; ++i)
    ones += ",1";
  EXPECT_EQ(accept(entry(R"("U8")", ones + "]", "[0,1]"), 1)
                .tensors["q"]
                .shape.size(),
            16u);
  refuse(entry(R"("U8")", ones + ",1]", "[0,1]"), 1,
         {"tensor 'q'", "shape", "more than 16", "at most 16"});
}

TEST(SafetensorsParse, OffsetsOfAnotherForm) {
  refuse(entry(R"("U8")", "[1]", "1"), 1, {"data_offsets", "wanted an array"});
  refuse(entry(R"("U8")", "[1]", "{}"), 1, {"data_offsets", "an object"});
  refuse(entry(R"("U8")", "[1]", "[]"), 1,
         {"tensor 'q'", "data_offsets", "found []", "wanted 2"});
  refuse(entry(R"("U8")", "[1]", "[0]"), 1, {"found [0]", "wanted 2"});
  refuse(entry(R"("U8")", "[1]", "[0,1,2]"), 1,
         {"data_offsets", "more than 2", "wanted 2"});
  refuse(entry(R"("U8")", "[1]", "[-1,0]"), 1,
         {"data_offsets", "found -1", "wanted an integer"});
  refuse(entry(R"("U8")", "[1]", "[0,1.0]"), 1, {"'1.0'", "an integer"});
  refuse(entry(R"("U8")", "[1]", "[0,\"1\"]"), 1, {"'1'", "an integer"});
}

TEST(SafetensorsParse, OffsetsOutside) {
  refuse(entry(R"("U8")", "[1]", "[1,0]"), 1,
         {"tensor 'q'", "data_offsets", "[1, 0]", "begin <= end <= 1"});
  refuse(entry(R"("U8")", "[2]", "[0,2]"), 1, {"[0, 2]", "<= 1"});
  // No more than a claim: nothing of this size may be allocated.
  refuse(entry(R"("U8")", "[1125899906842624]", "[0,1125899906842624]"), 1,
         {"[0, 1125899906842624]", "<= 1"});
}

TEST(SafetensorsParse, SizeIsNotTheShapes) {
  refuse(entry(R"("F32")", "[2,3]", "[0,20]"), 20,
         {"tensor 'q'", "20 bytes", "wanted 24 bytes for [2, 3] of F32"});
  refuse(entry(R"("F32")", "[]", "[0,0]"), 0, {"0 bytes", "wanted 4 bytes"});
}

TEST(SafetensorsParse, Overlap) {
  refuse(headerOf({vectorOver("a", 0, 3), vectorOver("b", 2, 4)}), 4,
         {"tensor 'b'", "begin 2", "an overlap", "wanted 3"});
  refuse(headerOf({vectorOver("a", 0, 4), vectorOver("b", 0, 4)}), 4,
         {"tensor 'b'", "begin 0", "an overlap", "wanted 4"});
  refuse(headerOf({vectorOver("a", 0, 4), vectorOver("b", 2, 2)}), 4,
         {"tensor 'b'", "an overlap"});
}

TEST(SafetensorsParse, Holes) {
  refuse(headerOf({vectorOver("a", 0, 1), vectorOver("b", 2, 4)}), 4,
         {"tensor 'b'", "begin 2", "a hole", "wanted 1"});
  refuse(headerOf({vectorOver("a", 1, 2)}), 2,
         {"tensor 'a'", "begin 1", "a hole", "wanted 0"});
  refuse(headerOf({vectorOver("a", 0, 2)}), 3,
         {"data", "found 3 bytes", "wanted 2"});
  refuse("{}", 1, {"data", "found 1 bytes", "wanted 0"});
}

TEST(SafetensorsParse, MetadataOfAnotherType) {
  for (std::string_view found : {"1", "null", "true", "-1", "1.5"})
    refuse(fmt::format(R"({{"__metadata__":{{"a":{}}}}})", found), 0,
           {"__metadata__: 'a'", std::string(found), "wanted a string"});
  refuse(R"({"__metadata__":{"a":{}}})", 0, {"an object", "wanted a string"});
  refuse(R"({"__metadata__":{"a":[]}})", 0, {"an array", "wanted a string"});
}

TEST(SafetensorsParse, BoolBytes) {
  std::string file = fileOf(entry(R"("BOOL")", "[3]", "[0,3]"), 3);
  std::string error;
  EXPECT_TRUE(parseText(file, error)) << error;
  file.back() = '\2';
  refuseFile(file, {"tensor 'q'", "byte 2", "element 2", "wanted 0 or 1"});
}

// Wherever a file ends early, that is said and nothing else happens.
TEST(SafetensorsParse, EveryTruncation) {
  std::string file = fileOf(entry(R"("F32")", "[2]", "[0,8]"), 8);
  for (size_t size = 0; size != file.size(); ++size)
    refuseFile(std::string_view(file).substr(0, size), {"found", "wanted"});
}

} // namespace
