#pragma once
// The signature of a call: everything that decides which captured program fits, as plain words. And how each word reads
// to people.
#include <string>
#include <vector>

#include "sinter/capture/function.h"

namespace sinter::capture {

// Of a tensor: a word of properties, one of the layout, its sizes, and its strides where the layout is no plain order of
// the dimensions.
struct Signature : SmallVector<int64_t, 96> {
  using SmallVector<int64_t, 96>::SmallVector;
};

// Words before those of the invocation. Among them: whether gradients are enabled, autocast and the default dtype; the types of the arguments and the state of
// the function object, which differ from process to process.
inline constexpr size_t kHeaderWords = 7, kGradModeWord = 1, kTypesWord = 3, kStateWord = 4, kAutocastWord = 5,
                        kDefaultDTypeWord = 6;

void sign(const Invocation& invocation, Signature& out);

struct Word {
  enum class Kind : uint8_t {
    kExact,   // must be equal
    kSize,    // a size of a tensor, or a Dim of the arguments: may be symbolic
    kNumber,  // the bits of a Scalar: a value, not part of the program
    kProperties,
    kLayout,
    kCounts,   // of tensors and of other words
    kFlag,     // yes or no
    kIdentity  // bits that only tell whether something is the same
  };
  Kind kind = Kind::kExact;
  std::string name;  // "argument 0.size(1)"
  int tensor = -1, dim = -1;
  std::string text = {};  // the value, where the bits alone do not tell how it is written
};

// One Word for each word of the signature.
std::vector<Word> describe(Invocation& invocation);
// The value of a word as people write it: "f32, rank 2, cpu, requires_grad".
std::string word_text(const Word& word, int64_t value);
// What differs between two calls, of which both have such a word: "argument 1 was 0.5, now 0.25".
std::string difference(const Word& before, int64_t value_before, const Word& now, int64_t value_now);
// Whether the arguments overlap in memory without being the same tensor.
bool has_overlaps(const Invocation& invocation);
// The group of arguments with the memory of this one, when they overlap; the first of them.
int overlap_leader(const Invocation& invocation, size_t tensor);

}  // namespace sinter::capture
