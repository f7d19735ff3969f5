# For the Makefile of a part that talks to the agent: include this after c.mk. The part compiles these sources
# with its own flags and links with -ldl.
CLIENT         := $(LIBS)/client
CLIENT_PARTS   := message credential connection ask_agent environment answer
CLIENT_SOURCES := $(CLIENT_PARTS:%=$(CLIENT)/%.c)
CLIENT_HEADERS := $(wildcard $(CLIENT)/*.h $(COMMON)/*.h)
CLIENT_INCLUDE := -I$(CLIENT) -I$(COMMON)
