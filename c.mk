# What the Makefiles of the C parts have in common; each includes this first.
PREFIX  ?= /usr
MULTIARCH := $(shell gcc -print-multiarch)
LIBDIR  ?= $(PREFIX)/lib/$(MULTIARCH)
CC      ?= gcc
BUILD   := build

WARNINGS := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror
HARDENED := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIC
CFLAGS   ?= -O2 -g
SANITIZE := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
LINKED   := -Wl,-z,relro,-z,now
