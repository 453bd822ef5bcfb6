#pragma once
// SINTER_API: what libsinter exports. Public headers (sinter/public_headers.txt) open their namespace with it; everything
// else is hidden.

#define SINTER_API __attribute__((visibility("default")))
