#pragma once
// Captured programs in the store, for functions that somebody vouches for: a process that finds one calls the function not
// even once. Only programs without breaks and gradients are kept.
#include "sinter/capture/entry.h"
#include "sinter/capture/options.h"
#include "sinter/capture/vouched.h"

namespace sinter::capture {

// The key of the program that this call would be captured as.
std::string kept_key(const Vouched& vouched, const CompileOptions& options, const Signature& signature,
                     const std::vector<Word>& words, const SizeTable& sizes, const Frame& frame);

// Puts the program into the store, where it can be kept; SINTER_LOGS=cache says why one is not.
void save_program(const std::string& key, const Vouched& vouched, const Entry& entry, const Frame& frame,
                  const std::string& name);

// The program of that key, ready for this call; null when there is none that fits.
std::shared_ptr<Entry> load_program(const std::string& key, const Vouched& vouched, const CompileOptions& options,
                                    const std::string& name, const Signature& signature, const std::vector<Word>& words,
                                    const Frame& frame);

}  // namespace sinter::capture
