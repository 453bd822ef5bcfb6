/* A stand-in for HIP's runtime and its compiler: one GPU, FAKE_HIP_ARCHITECTURE, whose memory is the host's. Compiled code is the
   text itself; what a launch does is the business of whoever sets fake_hip_launch. */
#include <stdlib.h>
#include <string.h>

void (*fake_hip_launch)(const char* text, const char* name, unsigned blocks, unsigned x, unsigned y, const void* params);

struct Function {
  const char* text;
  char* name;
};

const char* hipGetErrorString(int result) { return result ? "the fake's text" : "no error"; }
int hipInit(unsigned flags) { return (void)flags, 0; }
int hipGetDeviceCount(int* count) { return *count = 1, 0; }
int hipSetDevice(int device) { return device != 0; }
int hipDeviceGetAttribute(int* value, int which, int device) {
  return (void)device, *value = which == 63 ? 4 : which == 19 ? 1 << 20 : 0, 0; /* multiprocessors, second-level cache */
}
int hipGetDevicePropertiesR0600(void* properties, int device) {
  strcpy((char*)properties, "Fake AMD GPU");
  strcpy((char*)properties + 1160, getenv("FAKE_HIP_ARCHITECTURE"));
  strcat((char*)properties + 1160, ":sramecc+:xnack-");
  return device;
}
int hipMalloc(void** memory, size_t bytes) { return *memory = aligned_alloc(256, (bytes + 255) / 256 * 256), *memory ? 0 : 2; }
int hipFree(void* memory) { return free(memory), 0; }
int hipHostMalloc(void** memory, size_t bytes, unsigned flags) { return (void)flags, hipMalloc(memory, bytes); }
int hipHostGetDevicePointer(void** there, void* here, unsigned flags) { return (void)flags, *there = here, 0; }
int hipMemcpy(void* to, const void* from, size_t bytes, int kind) { return (void)kind, memmove(to, from, bytes), 0; }
int hipMemset(void* to, int byte, size_t bytes) { return memset(to, byte, bytes), 0; }
int hipDeviceSynchronize(void) { return 0; }

int hipModuleLoadData(void** module, const void* image) { return *module = strdup((const char*)image), 0; }
int hipModuleGetFunction(void** function, void* module, const char* name) {
  struct Function* made = malloc(sizeof *made);
  made->text = (const char*)module;
  made->name = strdup(name);
  return *function = made, 0;
}
int hipModuleLaunchKernel(void* function, unsigned blocks, unsigned by, unsigned bz, unsigned x, unsigned y, unsigned z,
                          unsigned shared, void* stream, void** params, void** extra) {
  struct Function* f = function;
  (void)by, (void)bz, (void)z, (void)shared, (void)stream, (void)extra;
  return fake_hip_launch(f->text, f->name, blocks, x, y, params[0]), 0;
}

const char* hiprtcGetErrorString(int result) { return hipGetErrorString(result); }
int hiprtcVersion(int* major, int* minor) { return *major = 9, *minor = 9, 0; }
int hiprtcCreateProgram(void** program, const char* text, const char* name, int headers, const char** a, const char** b) {
  return (void)name, (void)headers, (void)a, (void)b, *program = strdup(text), 0;
}
int hiprtcDestroyProgram(void** program) { return free(*program), 0; }
int hiprtcCompileProgram(void* program, int count, const char** options) {
  (void)program;
  for (int i = 0; i < count; ++i)
    if (!strncmp(options[i], "--offload-arch=", 15)) return strcmp(options[i] + 15, getenv("FAKE_HIP_ARCHITECTURE")) != 0;
  return 1;
}
int hiprtcGetCodeSize(void* program, size_t* bytes) { return *bytes = strlen((const char*)program) + 1, 0; }
int hiprtcGetCode(void* program, char* to) { return strcpy(to, (const char*)program), 0; }
int hiprtcGetProgramLogSize(void* program, size_t* bytes) { return (void)program, *bytes = 1, 0; }
int hiprtcGetProgramLog(void* program, char* to) { return (void)program, *to = 0, 0; }
