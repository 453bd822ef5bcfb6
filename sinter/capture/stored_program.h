#pragma once
// Captured programs in the store, for functions that have a fingerprint: a process that finds one calls the function not
// even once. Only programs without breaks and gradients are stored.
#include "sinter/capture/entry.h"
#include "sinter/capture/options.h"
#include "sinter/capture/fingerprint.h"

namespace sinter::capture {

// The key of the program that this call would be captured as.
std::string stored_key(const Fingerprint& fingerprint, const CompileOptions& options, const Signature& signature,
                     const std::vector<Word>& words, const SizeTable& sizes, const Invocation& invocation);

// Puts the program into the store, where it can be; SINTER_LOGS=cache says why one is not.
void save_program(const std::string& key, const Fingerprint& fingerprint, const CacheEntry& entry, const Invocation& invocation,
                  const std::string& name);

// The program of that key, ready for this call; null when there is none that fits.
std::shared_ptr<CacheEntry> load_program(const std::string& key, const Fingerprint& fingerprint, const CompileOptions& options,
                                    const std::string& name, const Signature& signature, const std::vector<Word>& words,
                                    const Invocation& invocation);

}  // namespace sinter::capture
