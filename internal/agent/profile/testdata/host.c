/* Loads libraries for themselves alone, as Python does, and runs the function program of the last one. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
	void *library = 0;
	for (int i = 1; i < count; i++) {
		library = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
		if (!library) return puts(dlerror());
	}
	int (*program)(int, char **) = (int (*)(int, char **))dlsym(library, "program");
	return program(1, arguments);
}
