#pragma once
/* Programs of PyTorch, for other languages: load, compile, run on tensors of any library that speaks DLPack.
 *
 *   SinterProgram* program;
 *   if (sinter_load("model.pt2", NULL, 0, &program) != SINTER_OK) puts(sinter_error());
 *   SinterValue x = {.kind = SINTER_TENSOR, .tensor = &dl_tensor}, y;
 *   sinter_run(program, &x, 1, NULL, &y, 1);
 *
 * What returns a status leaves the reason of anything but SINTER_OK in sinter_error(). All functions may be called from any
 * thread, and one program from several at a time. */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define SINTER_C_API extern "C" __attribute__((visibility("default")))
#else
#define SINTER_C_API __attribute__((visibility("default")))
#endif

typedef enum {
  SINTER_OK = 0,
  SINTER_ERROR = 1,         /* what was asked for cannot be done */
  SINTER_OUT_OF_MEMORY = 2,
  SINTER_INTERNAL = 3       /* a fault of Sinter's */
} SinterStatus;

/* Why the last call on this thread that failed did; and the node of the program that it was about, or "". Both until the next
 * failure. */
SINTER_C_API const char* sinter_error(void);
SINTER_C_API const char* sinter_error_node(void);
SINTER_C_API const char* sinter_version(void);

/* --- programs */

typedef struct SinterProgram SinterProgram;

/* "mode" is that of compile(), "fullgraph" and "dynamic" ("auto", "true", "false") too; every other name is one of its options. */
typedef struct {
  const char* name;
  const char* value;
} SinterOption;

/* Whether programs may call this function of ATen: "aten.add.Tensor". */
SINTER_C_API int sinter_takes(const char* function);
/* Whether Sinter has this dtype, by its number in exported programs. */
SINTER_C_API int sinter_takes_dtype(int64_t code);

/* A file of torch.export.save. Its inputs and results are tensors. */
SINTER_C_API SinterStatus sinter_load(const char* path, const SinterOption* options, size_t option_count,
                                      SinterProgram** out);
/* The graph of an exported program as JSON, without weights: all that it reads is an input, numbers too. */
SINTER_C_API SinterStatus sinter_read(const char* json, size_t bytes, const SinterOption* options, size_t option_count,
                                      SinterProgram** out);
SINTER_C_API void sinter_free(SinterProgram* program);
SINTER_C_API size_t sinter_input_count(const SinterProgram* program);
SINTER_C_API size_t sinter_result_count(const SinterProgram* program);
/* The name of an input of a file; "" for graphs. */
SINTER_C_API const char* sinter_input_name(const SinterProgram* program, size_t input);

/* --- runs */

typedef enum { SINTER_NOTHING = 0, SINTER_TENSOR = 1, SINTER_INTEGER = 2, SINTER_REAL = 3 } SinterKind;

/* An input or a result. */
typedef struct {
  int32_t kind;    /* a SinterKind */
  int32_t input;   /* of a result: the input whose memory it has, or -1 */
  void* tensor;    /* of an input a DLTensor*, lent for the time of the call; of a result a DLManagedTensorVersioned*, which is the
                      caller's: he calls its deleter once. Null where the result is the input itself, untouched. */
  int64_t integer;
  double real;
} SinterValue;

/* Compiles what calls with inputs like these need; nothing is run. The memory of tensors is not looked at and may be null. */
SINTER_C_API SinterStatus sinter_prepare(SinterProgram* program, const SinterValue* inputs, size_t input_count);
/* `stream`: the queue of the device on which inputs come and results are wanted; null: the library's own. A result on the memory of
 * an input is valid for as long as that input's memory is. */
SINTER_C_API SinterStatus sinter_run(SinterProgram* program, const SinterValue* inputs, size_t input_count, void* stream,
                                     SinterValue* results, size_t result_count);

/* --- the process */

/* The threads that parallel loops use. */
SINTER_C_API SinterStatus sinter_set_threads(int threads);
/* What random numbers depend on. */
SINTER_C_API SinterStatus sinter_seed(uint64_t seed);
