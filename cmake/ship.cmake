# SPDX-License-Identifier: Apache-2.0
# src/ship: sealed segments to where they are wanted. Linked into the command, and into libweft-ship.so, which
# libweft.so opens when a recorder has a target. libcurl and libcrypto are opened at run time, by both.
find_path(CURL_INCLUDE_DIR curl/curl.h)
find_path(JANSSON_INCLUDE_DIR jansson.h)
find_library(JANSSON NAMES jansson)
if(NOT CURL_INCLUDE_DIR OR NOT JANSSON_INCLUDE_DIR OR NOT JANSSON)
	message(FATAL_ERROR "curl/curl.h, jansson.h or libjansson not found: run tools/bootstrap build")
endif()

file(GLOB ship CONFIGURE_DEPENDS src/ship/*.c)
add_library(weft_ship_static STATIC ${ship})
target_include_directories(weft_ship_static PRIVATE include src ${CURL_INCLUDE_DIR} ${JANSSON_INCLUDE_DIR})
target_link_libraries(weft_ship_static PUBLIC weft_static ${JANSSON} ${CMAKE_DL_LIBS})
