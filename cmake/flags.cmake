# SPDX-License-Identifier: Apache-2.0
# One set of flags for every object. initial-exec makes the thread's ring one load away, with no call that could
# allocate in a signal handler.
add_compile_options(-pthread -fvisibility=hidden -ftls-model=initial-exec
	-Wall -Wextra)
foreach(warning -Wshadow -Wstrict-prototypes -Wmissing-prototypes)
	add_compile_options($<$<COMPILE_LANGUAGE:C>:${warning}>)
endforeach()
add_link_options(-pthread)
add_compile_definitions(_GNU_SOURCE=1) # a file that says it itself says 1 too
if(WEFT_WERROR)
	add_compile_options(-Werror)
endif()
if(WEFT_CHECK)
	add_compile_definitions(WEFT_CHECK=1)
endif()
if(WEFT_SANITIZE)
	add_compile_options(-fsanitize=${WEFT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
	add_link_options(-fsanitize=${WEFT_SANITIZE})
endif()
if(WEFT_FUZZ)
	add_compile_options(-fsanitize=fuzzer-no-link)
endif()
